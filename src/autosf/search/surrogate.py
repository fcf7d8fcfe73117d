"""What a structure's features say about its MRR, and how surely: a Gaussian process over the invariants.

A structure's value is a smooth function of its features plus an effect of its own; a label is the value plus
noise whose size differs from label to label (a mean of three seeds, one seed, a short training extrapolated).
Shape and size of the kernel are chosen by the likelihood of the labels, one after the other over small grids,
which is deterministic and takes milliseconds for hundreds of labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from autosf.search.many_invariants import many_invariants
from autosf.search.typical import feature_spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure

    Array = NDArray[np.float64]

LENGTHS = (0.5, 1.0, 2.0, 4.0)  # of the kernel, in units of the labels' typical distance
SMOOTH_SHARES = (0.3, 0.6, 0.8, 0.95)  # of the variance that features explain
SCALES = (0.5, 1.0, 2.0)  # of the variance, in units of the labels'
SAME = 1e-9  # squared distance that rounding leaves between equal features
MOST_KEPT = 1 << 16
KEPT: dict[Structure, Array] = {}  # scaled features
OUTLIER = 2.0  # spreads below the lower quartile; a hopeless structure teaches no more than a bad one


@dataclass(frozen=True, slots=True)
class Estimate:
    """A structure's MRR after full training, averaged over seeds, as far as it is known."""

    mean: float
    variance: float


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """Covariance of two structures' values: variance * (smooth * similarity + (1 - smooth) * the same one)."""

    length: float
    smooth: float
    variance: float

    def between(self, distances: Array, same: NDArray[np.bool_]) -> Array:
        return self.mixed(self.similarity(distances), same)

    def similarity(self, distances: Array) -> Array:
        """What structures with such features share: the part that takes time, and hangs on the length alone."""
        shared: Array = np.exp(-0.5 * distances / self.length**2)
        return shared

    def mixed(self, similarity: Array, same: NDArray[np.bool_]) -> Array:
        covariance: Array = self.variance * (self.smooth * similarity + (1 - self.smooth) * same)
        return covariance


@dataclass(frozen=True, slots=True, eq=False)
class Surrogate:
    """Fitted to labels; tells the joint distribution of the values of any structures, labelled or not."""

    structures: tuple[Structure, ...]
    centre: float
    kernel: Kernel
    rows: Array  # the structures' features, in units of their spread
    factor: tuple[Array, bool]  # Cholesky's, of the labels' covariance
    weights: Array  # the inverse covariance of the labels times their deviations

    def posterior(self, structures: Sequence[Structure]) -> tuple[Array, Array]:
        """Means [n] and covariance [n, n] of the structures' values."""
        asked = scaled_features(structures)
        cross = self.kernel.between(squared_distances(asked, self.rows), same(structures, self.structures))
        own = self.kernel.between(squared_distances(asked, asked), same(structures, structures))
        mean: Array = self.centre + cross @ self.weights
        covariance: Array = own - cross @ cho_solve(self.factor, cross.T, check_finite=False)
        return mean, covariance


def scaled_features(structures: Sequence[Structure]) -> Array:
    """Features in units of how much they vary among structures that a search meets. [n, features]

    They are kept, as a search asks for those of a structure several times a round.
    """
    new = [structure for structure in dict.fromkeys(structures) if structure not in KEPT]
    if len(KEPT) + len(new) > MOST_KEPT:
        KEPT.clear()
        new = list(dict.fromkeys(structures))
    if new:
        KEPT.update(zip(new, many_invariants(new) / feature_spread(), strict=True))
    return np.array([KEPT[structure] for structure in structures])


def fit_surrogate(labels: Mapping[Structure, Estimate]) -> Surrogate:
    """The process under which the labels are most likely; at least one label is needed."""
    structures = tuple(labels)
    values = without_outliers(np.array([label.mean for label in labels.values()]))
    rows = scaled_features(structures)
    distances = squared_distances(rows, rows)
    spread_of_values = max(float(values.var()), 1e-8)
    noise = np.array([label.variance for label in labels.values()]) + 1e-6 * spread_of_values
    centre = float(np.median(values))
    identity = np.eye(len(structures), dtype=bool)
    apart = distances[~identity & (distances > SAME)]
    typical = float(np.sqrt(np.median(apart))) if len(apart) else 1.0
    similar: dict[float, Array] = {}

    def fitted(kernel: Kernel) -> tuple[float, Kernel, tuple[Array, bool], Array]:
        if kernel.length not in similar:
            similar[kernel.length] = kernel.similarity(distances)
        covariance = kernel.mixed(similar[kernel.length], identity)
        covariance.flat[:: len(noise) + 1] += noise
        factor = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        found, weights = likelihood(factor, values - centre)
        return found, kernel, factor, weights

    shapes = [
        Kernel(part * typical, smooth, spread_of_values) for part in LENGTHS for smooth in SMOOTH_SHARES
    ]
    shape = max(map(fitted, shapes), key=itemgetter(0))[1]
    scaled = [replace(shape, variance=scale * spread_of_values) for scale in SCALES]
    _, kernel, factor, weights = max(map(fitted, scaled), key=itemgetter(0))
    return Surrogate(structures, centre, kernel, rows, factor, weights)


def likelihood(factor: tuple[Array, bool], deviations: Array) -> tuple[float, Array]:
    """Log-likelihood of the deviations up to a constant, and covariance^-1 times them."""
    weights: Array = cho_solve(factor, deviations, check_finite=False)
    return float(-0.5 * deviations @ weights - np.log(np.diag(factor[0])).sum()), weights


def without_outliers(values: Array) -> Array:
    """Values far below the others raised to the edge of what is usual, so that they do not set the scale."""
    low, middle = np.quantile(values, [0.25, 0.5])
    raised: Array = np.maximum(values, low - OUTLIER * max(middle - low, 1e-3))
    return raised


def squared_distances(one: Array, other: Array) -> Array:
    """[n, m]"""
    products = -2 * one @ other.T + (one**2).sum(1)[:, None] + (other**2).sum(1)[None, :]
    distances: Array = np.maximum(products, 0.0)
    return distances


def same(one: Sequence[Structure], other: Sequence[Structure]) -> NDArray[np.bool_]:
    """Where two lists hold the same structure. [n, m]"""
    numbers = {structure: number for number, structure in enumerate(dict.fromkeys((*one, *other)))}
    left = np.array([numbers[structure] for structure in one])
    right = np.array([numbers[structure] for structure in other])
    equal: NDArray[np.bool_] = left[:, None] == right[None, :]
    return equal
