"""The cluster that a user's options name, checked before anything is read or trained."""

from __future__ import annotations

from numbers import Real

from autosf.app.given import described
from autosf.errors import UserError, quoted
from autosf.runs.cluster import Site, ray_module, refuse_unreachable


def site_of(cluster: str | None, workers: int | None, cpus: float | None, gpus: float | None) -> Site | None:
    """Where trials run and what each asks for; None where this machine's own workers do."""
    for name, asked in (("--cpus-per-trial", cpus), ("--gpus-per-trial", gpus)):
        if asked is not None and cluster is None:
            raise UserError(f"{name}: needs a --cluster")
        if asked is not None and not is_room(asked):
            raise UserError(f"{name}: expected a whole number, or a share below 1, found {quoted(asked)}")
    if cluster is None:
        return None
    if not isinstance(cluster, str):
        raise UserError(
            f"cluster: expected an address as host:port, auto or local, found {described(cluster)}"
        )
    ray_module()
    refuse_unreachable(cluster)
    return Site(cluster, cpus, gpus or 0.0, workers)


def is_room(asked: object) -> bool:
    """Whether a trial may ask for it: a whole number of CPUs or GPUs, or a share of one."""
    if not isinstance(asked, Real) or not 0 <= float(asked) < float("inf"):
        return False
    return float(asked) <= 1 or float(asked).is_integer()
