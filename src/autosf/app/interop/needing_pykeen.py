"""PyKEEN when it is there, and one clear line when it is not."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from autosf.errors import lacks_extra

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "pykeen:"


def refuse_without_pykeen(what: str) -> None:
    """Raise, with what to install, unless PyKEEN is installed; it is not imported yet."""
    if find_spec("pykeen") is None:
        raise lacks_extra(what, "pykeen")


@contextmanager
def quiet() -> Iterator[None]:
    """PyKEEN without its remarks to developers; ours is the only voice on stderr."""
    logger = logging.getLogger("pykeen")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
