"""The filter's and predictor's part of a greedy step, beside the paper's way of doing it."""

from __future__ import annotations

import random
import time

from autosf.algebra.constraints import satisfies_c2
from autosf.algebra.features import invariants, srf
from autosf.algebra.invariance import canonical, canonical_cells, equivalents, images, leading, sign_rule
from autosf.algebra.space import five_f4
from autosf.algebra.structure import Structure, from_cells
from benchmarks.measured import Measured, seconds

ROUNDS, CANDIDATES = 32, 256  # one greedy step of the paper: 8,192 candidates


def greedy_candidates(rng: random.Random, count: int) -> list[Structure]:
    """f^6 made as Alg. 2 makes them: two random terms on a random f^4."""
    found = []
    while len(found) < count:
        cells = list(rng.choice(five_f4()).cells)
        for place in rng.sample([p for p, cell in enumerate(cells) if not cell], 2):
            cells[place] = rng.choice((1, -1)) * rng.randint(1, 4)
        found.append(from_cells(cells))
    return found


def run() -> list[Measured]:
    """Canonical forms against the plain loop over all images, and a whole greedy step."""
    candidates = greedy_candidates(random.Random(0), ROUNDS * CANDIDATES)
    one = candidates[0]
    plain = seconds(lambda: min(images(one)), repeats=2)
    plain_set = seconds(lambda: equivalents(one), repeats=2)
    lines = [Measured("the plain loop over 9,216 images, per structure", plain * 1e3, "ms")]
    for group in ("paper", "extended"):
        leading.cache_clear()
        sign_rule.cache_clear()
        started = time.perf_counter()
        for candidate in candidates:
            canonical(candidate, group)
        each = (time.perf_counter() - started) / len(candidates)
        lines.append(Measured(f"canonical form, {group} group, cold: times faster", plain / each, "x", 300))
    each = seconds(lambda: [canonical_cells(c.cells, 4) for c in candidates[:1000]]) / 1000
    lines.append(Measured("canonical cells in a loop, warm: times faster", plain / each, "x"))
    lines.append(Measured("9,216 images as a set / one canonical form", plain_set / each, "x"))
    started = time.perf_counter()
    kept = {canonical(c, "extended") for c in candidates if satisfies_c2(c, up_to_sign=True)}
    for structure in candidates:
        srf(structure)
    step = time.perf_counter() - started
    note = f"the paper: 16 minutes; {len(kept)} classes among them"
    lines.append(Measured("a greedy step: C2, canonical form and SRF of 8,192", step, "s", 10, note))
    started = time.perf_counter()
    for structure in candidates:
        invariants(structure)
    lines.append(Measured("the finer invariants of 8,192 candidates", time.perf_counter() - started, "s", 10))
    return lines
