"""AutoSF: finds the bilinear scoring function that suits a knowledge graph (Zhang et al., ICDE 2020)."""

from __future__ import annotations

from importlib import import_module
from inspect import Signature, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autosf.algebra.structure import Structure
    from autosf.app.found import resume, search
    from autosf.app.graphs import graph_for_programs as read_graph
    from autosf.app.predicting import load
    from autosf.app.training import train_model as train
    from autosf.errors import UserError

__version__ = "0.1.0"
__all__ = ["Structure", "UserError", "__version__", "load", "read_graph", "resume", "search", "train"]

# What a program calls, with the place of each: `import autosf` itself loads none of the heavy packages.
_DOORS = {
    "load": ("autosf.app.predicting", "load"),
    "read_graph": ("autosf.app.graphs", "graph_for_programs"),
    "resume": ("autosf.app.found", "resume"),
    "train": ("autosf.app.training", "train_model"),
    "Structure": ("autosf.algebra.structure", "Structure"),
    "UserError": ("autosf.errors", "UserError"),
}


class _SearchDoor(ModuleType):
    """`autosf.search` is a layer and a front door: a package that, called, is `autosf.app.found.search`."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return import_module("autosf.app.found").search(*arguments, **options)

    @property
    def __signature__(self) -> Signature:
        return signature(import_module("autosf.app.found").search)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return str(import_module("autosf.app.found").search.__doc__)


import_module("autosf.search").__class__ = _SearchDoor  # it holds nothing but its title


def __getattr__(name: str) -> Any:
    """The front door of that name, imported when it is first asked for."""
    if name not in _DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _DOORS[name]
    found = getattr(import_module(module), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_DOORS})
