"""The predictor P (Sec. IV-B3): a small network from a structure's features to its validation MRR."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from autosf.algebra.structure import Structure

if TYPE_CHECKING:
    from autosf.search.record import Record

Encoder = Callable[[Structure], tuple[float, ...]]
Predictor = Callable[[Sequence[Structure]], NDArray[np.float64]]

HIDDEN = {"srf": 2, "one-hot": 8}  # the paper's networks: 22-2-1 and 96-8-1
WEIGHT_DECAY, STEPS = 0.1, 100  # the paper gives neither


def fit_predictor(records: Sequence[Record], encoder: Encoder, hidden: int, seed: int) -> Predictor:
    """Predicted validation MRR of structures, by a two-layer network fitted to all records."""
    from sklearn.exceptions import ConvergenceWarning  # a second to import
    from sklearn.neural_network import MLPRegressor

    mrr = np.array([record.valid_mrr for record in records])
    spread = mrr.std() or 1.0  # equal targets: nothing to scale
    # tanh: with two rectified units a fit now and then ends with both dead and predicts a constant
    network = MLPRegressor(
        hidden_layer_sizes=(hidden,),
        activation="tanh",
        solver="lbfgs",
        alpha=WEIGHT_DECAY,
        max_iter=STEPS,
        random_state=seed % 2**32,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is meant
        network.fit(
            features([record.trial.structure for record in records], encoder), (mrr - mrr.mean()) / spread
        )

    def predicted(structures: Sequence[Structure]) -> NDArray[np.float64]:
        rows, places = np.unique(features(structures, encoder), axis=0, return_inverse=True)
        # one prediction for equal features: a matrix product may round equal rows differently
        return np.asarray(network.predict(rows)[places] * spread + mrr.mean())

    return predicted


def features(structures: Sequence[Structure], encoder: Encoder) -> NDArray[np.float64]:
    """The structures' features. [structures, features]"""
    return np.array([encoded(structure, encoder) for structure in structures], dtype=np.float64)


@lru_cache(maxsize=1 << 16)  # every refit asks again for the features of all records
def encoded(structure: Structure, encoder: Encoder) -> tuple[float, ...]:
    return encoder(structure)
