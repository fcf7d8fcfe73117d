"""The cluster that a user's options name, checked before anything is read or trained."""

from __future__ import annotations

from autosf.errors import UserError
from autosf.runs.cluster import Site, ray_module, refuse_unreachable


def site_of(cluster: str | None, workers: int | None, cpus: float | None, gpus: float | None) -> Site | None:
    """Where trials run and what each asks for; None where this machine's own workers do."""
    for name, asked in (("--cpus-per-trial", cpus), ("--gpus-per-trial", gpus)):
        if asked is not None and cluster is None:
            raise UserError(f"{name}: needs a --cluster")
        if asked is not None and (not 0 <= asked < float("inf") or (asked > 1 and asked % 1)):
            raise UserError(f"{name}: expected a whole number, or a share below 1, found {asked:g}")
    if cluster is None:
        return None
    ray_module()
    refuse_unreachable(cluster)
    return Site(cluster, cpus, gpus or 0.0, workers)
