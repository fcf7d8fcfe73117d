"""How a model is trained: every choice with its default, checked when it is made."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from autosf.errors import UserError, did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICES = {
    "loss": ("multiclass", "sampled-softmax", "logistic", "hinge"),
    "optimiser": ("adagrad", "adam", "sgd"),
    "regulariser": ("n3", "n3-moduli", "l2", "dura", "none"),
    "sampler": ("uniform", "bernoulli", "cache"),
}
SOFTMAX = ("multiclass", "sampled-softmax")  # losses of whole queries, against all entities or some


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """Settings of Alg. 1. The defaults are plain ones; `presets` has those that suit a graph, known or not."""

    dimension: int = 64
    epochs: int = 50
    batch_size: int = 512  # unique queries for the softmax losses, triples for logistic and hinge
    learning_rate: float = 0.1
    decay: float = 1.0  # the learning rate is multiplied by this after each epoch
    optimiser: str = "adagrad"
    loss: str = "multiclass"
    regulariser: str = "n3"
    entity_weight: float = 0.05  # of the regulariser, per triple
    relation_weight: float = 0.05
    dropout: float = 0.0  # on queries
    start_scale: float = 1e-3  # standard deviation of the first embeddings
    reciprocal: bool = False  # head queries through relations of their own
    relation_prediction: float = 0.0  # weight of the loss over (h, ?, t)
    averaging: float = 0.0  # share of the past in an average of the weights over epochs; that is what is kept
    unit_ball: bool = False  # entities projected into it after every step, as the released code does
    negatives: int = 50  # per triple; for sampled-softmax drawn for the whole batch
    sampler: str = "uniform"
    margin: float = 1.0  # of the hinge loss
    patience: int = 5  # validations without a better MRR before training stops; 0 never stops
    validate_every: int = 5  # epochs; 0 never validates
    validation_candidates: int = 0  # entities that validation estimates ranks from; 0 ranks among all
    score_megabytes: int = 0  # of scores held at once, which bounds the memory; 0 holds as many as is fastest

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                hint = did_you_mean(str(value), choices) or f"; expected one of {', '.join(choices)}"
                raise UserError(f"setting {name}: unknown value {quoted(value)}{hint}")
        for name, (least, most, shown) in RANGES.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise UserError(f"setting {name}: expected {shown}, found {value}")
        if self.validation_candidates == 1:
            raise UserError("setting validation_candidates: expected 0 or a number from 2, found 1")
        if self.relation_prediction and self.loss not in SOFTMAX:
            raise UserError(
                f"setting relation_prediction: works with loss {' or '.join(SOFTMAX)} only, found {self.loss}"
            )
        if self.sampler != "uniform" and self.loss not in ("logistic", "hinge"):
            raise UserError(f"setting sampler: works with loss logistic or hinge only, found {self.loss}")

    def changed(self, values: Mapping[str, Any]) -> TrainingSettings:
        """These settings with some values replaced; unknown names and wrong types are the user's mistakes."""
        kinds = {field.name: type(getattr(self, field.name)) for field in fields(self)}
        converted = {}
        for name, value in values.items():
            if name not in kinds:
                hint = did_you_mean(name, kinds) or f"; expected one of {', '.join(kinds)}"
                raise UserError(f"unknown setting {quoted(name)}{hint}")
            converted[name] = converted_value(name, value, kinds[name])
        if converted.get("loss", self.loss) not in SOFTMAX:
            converted.setdefault("relation_prediction", 0.0)  # a preset's is of the multi-class loss
        return replace(self, **converted)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


ANY = sys.float_info.max  # infinity is no number to train with
RANGES: dict[str, tuple[float, float, str]] = {
    "dimension": (2, 65_536, "a number from 2 to 65,536"),
    "epochs": (0, ANY, "a number from 0"),
    "batch_size": (1, ANY, "a number from 1"),
    "learning_rate": (0, ANY, "a number from 0"),
    "decay": (0, 1, "a number from 0 to 1"),
    "entity_weight": (0, ANY, "a number from 0"),
    "relation_weight": (0, ANY, "a number from 0"),
    "dropout": (0, 0.95, "a number from 0 to 0.95"),
    "start_scale": (0, ANY, "a number from 0"),
    "relation_prediction": (0, ANY, "a number from 0"),
    "averaging": (0, 0.999, "a number from 0 to 0.999"),
    "negatives": (1, 1_000_000, "a number from 1 to 1,000,000"),
    "margin": (0, ANY, "a number from 0"),
    "patience": (0, ANY, "a number from 0"),
    "validate_every": (0, ANY, "a number from 0"),
    "validation_candidates": (0, ANY, "a number from 0"),
    "score_megabytes": (0, ANY, "a number from 0"),
}


def converted_value(name: str, value: Any, kind: type) -> Any:
    """A value in the setting's own type, if that loses nothing."""
    if kind in (int, float) and isinstance(value, Integral) and not isinstance(value, bool):
        return kind(value)  # numpy's, too
    if kind is float and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise UserError(f"setting {name}: expected {KINDS[kind]}, found {quoted(value)}")
    return value


KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def refuse_odd_dimension(dimension: int, parts: int) -> None:
    """An embedding is cut into equal parts."""
    if dimension % parts:
        fitting = max(parts, round(dimension / parts) * parts)
        raise UserError(
            f"dimension: expected a multiple of the structure's {parts} parts, found {dimension};"
            f" {fitting} would do"
        )


SMALL = 1 << 17  # scores of a batch; with more of them, sums take the time
WIDEST = 16  # structures in a stack; with more it no longer fits in cache


def is_small_step(entities: int, settings: TrainingSettings) -> bool:
    """Whether a step is mostly its calls, so that threads would wait for each other longer than they work."""
    return entities * settings.batch_size <= SMALL


def stack_size(entities: int, settings: TrainingSettings) -> int:
    """How many structures are best trained `side_by_side`; 1 where each is better trained by itself."""
    plain = not settings.relation_prediction and not settings.unit_ball
    small = is_small_step(entities, settings)
    return WIDEST if small and plain and settings.loss == "multiclass" else 1
