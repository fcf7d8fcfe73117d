"""What a tuning may choose from: a range for each setting, the paper's by default (Sec. V-A2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from optuna.distributions import BaseDistribution


@dataclass(frozen=True, slots=True)
class Between:
    """Numbers from low to high, both included."""

    low: float
    high: float
    log: bool = False

    def nearest(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    def widened(self, value: float) -> Between:
        """The range with `value` in it, if its scale can hold it."""
        if self.log and value <= 0:
            return self
        return replace(self, low=min(self.low, value), high=max(self.high, value))


@dataclass(frozen=True, slots=True)
class OneOf:
    """Some values, without an order."""

    values: tuple[Any, ...]

    def nearest(self, value: Any) -> Any:
        """The value itself if it is there, else the nearest number, or the first of other values."""
        if value in self.values or not isinstance(value, (int, float)):
            return value if value in self.values else self.values[0]
        return min(self.values, key=lambda other: abs(other - value))

    def widened(self, value: Any) -> OneOf:
        """The values with `value` among them, in order."""
        return OneOf(tuple(sorted({*self.values, value})))


Range = Between | OneOf

REGULARISATION = "regularisation"  # both weights of the regulariser at once: the paper has one
WEIGHTS = ("entity_weight", "relation_weight")
PAPER_RANGES: dict[str, Range] = {
    "learning_rate": Between(0.0, 1.0),
    REGULARISATION: Between(1e-5, 1e-1, log=True),
    "decay": Between(0.99, 1.0),
    "batch_size": OneOf((256, 512, 1024)),
}


@dataclass(frozen=True, slots=True)
class Start:
    """Settings that a tuning tries before it samples, and where they lie in its ranges."""

    settings: TrainingSettings
    point: dict[str, Any]


def tuning_ranges(
    settings: TrainingSettings, given: Mapping[str, Range], held: Collection[str] = ()
) -> dict[str, Range]:
    """The paper's ranges, widened to hold `settings` and the defaults, then those given.

    A setting that is held has no range, unless one is given for it.
    """
    checked = {name: checked_range(name, wanted, settings) for name, wanted in given.items()}
    fixed = {*held, *given}
    if fixed & set(WEIGHTS):
        fixed.add(REGULARISATION)
    ranges = dict[str, Range]()
    for name, wanted in PAPER_RANGES.items():
        if name not in fixed:
            ranges[name] = wanted.widened(value_of(settings, name)).widened(
                value_of(TrainingSettings(), name)
            )
    return ranges | checked


def checked_range(name: str, wanted: Range, settings: TrainingSettings) -> Range:
    """The range in the setting's own type; what the setting itself would refuse is refused."""

    def own(value: Any) -> Any:
        return value_of(with_values(settings, {name: value}), name)

    if isinstance(wanted, OneOf):
        return OneOf(tuple(dict.fromkeys(own(value) for value in wanted.values)))
    low, high = own(wanted.low), own(wanted.high)
    if isinstance(low, (str, bool)) or name == "dimension":
        raise UserError(f"range of {name}: expected values with commas between, found {low}:{high}")
    if low > high or (wanted.log and low <= 0):
        least = "above 0 " if wanted.log else ""
        raise UserError(f"range of {name}: expected a low end {least}and a higher end, found {low}:{high}")
    return Between(low, high, wanted.log)


def starts(settings: TrainingSettings, ranges: Mapping[str, Range]) -> tuple[Start, ...]:
    """The settings themselves, then the defaults of what is tuned; moved into a range that leaves them out."""
    defaults = with_values(settings, {name: value_of(TrainingSettings(), name) for name in ranges})
    found = [placed(each, ranges) for each in (settings, defaults)]
    return tuple(found[:1] if found[0].settings == found[1].settings else found)


def placed(settings: TrainingSettings, ranges: Mapping[str, Range]) -> Start:
    """The settings, changed only where a range leaves their value out."""
    point = {name: wanted.nearest(value_of(settings, name)) for name, wanted in ranges.items()}
    outside = {name: value for name, value in point.items() if value != value_of(settings, name)}
    return Start(with_values(settings, outside), point)


def value_of(settings: TrainingSettings, name: str) -> Any:
    return getattr(settings, WEIGHTS[0] if name == REGULARISATION else name)


def with_values(settings: TrainingSettings, values: Mapping[str, Any]) -> TrainingSettings:
    """The settings with a point's values."""
    spread = {name: value for name, value in values.items() if name != REGULARISATION}
    if REGULARISATION in values:
        spread |= dict.fromkeys(WEIGHTS, values[REGULARISATION])
    return settings.changed(spread)


def distribution(wanted: Range) -> BaseDistribution:
    """The range in Optuna's words."""
    if isinstance(wanted, OneOf):
        return CategoricalDistribution(wanted.values)
    if isinstance(wanted.low, int):
        return IntDistribution(wanted.low, int(wanted.high), log=wanted.log)
    return FloatDistribution(wanted.low, wanted.high, log=wanted.log)
