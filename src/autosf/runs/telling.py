"""Epochs as the driver hears of them, now and then: some take two milliseconds, and telling of one takes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.embedding.state import Epoch


def now_and_then(
    tell: Callable[..., None], seconds: float, clock: Callable[[], float]
) -> Callable[[int, Epoch], None]:
    """An ear that passes on the first epoch, and then one in a while with the last validation before it.

    Of trials side by side one speaks for all: each has its place.
    """
    last_told = float("-inf")
    validated: dict[int, float] = {}

    def heard(place: int, epoch: Epoch) -> None:
        nonlocal last_told
        if epoch.valid_mrr is not None:
            validated[place] = epoch.valid_mrr
        now = clock()
        if now - last_told >= seconds:
            tell(place=place, epoch=epoch.number, loss=epoch.loss, valid_mrr=validated.pop(place, None))
            last_told = now

    return heard
