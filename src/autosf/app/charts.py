"""Charts as SVG text: lines with bands, points, horizontal bars. Coloured by the page's stylesheet, which knows
light and dark; `standalone` makes a file of one. Names may be any text: they are escaped here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, inf, isfinite, log10
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from autosf.app.pages import read
from autosf.errors import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

WIDTH, HEIGHT = 480, 300  # of the drawing; a page scales it
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 12, 46  # around the plot
LEGEND_ROW = 20
LEGEND_NAME = 300  # of the width, at most
COLOURS = 6  # of series; then they begin again
LETTER = 8.2  # most small letters' width, in a font that is rather wide; the others' as multiples of it
NARROW, WIDE = frozenset("fijlrt .,:;'|!()[]/-"), frozenset("mMW@%\N{HORIZONTAL ELLIPSIS}\N{EM DASH}")
MOST_DOTS = 40  # of a series; the dots of a longer one show under the pointer only
BAR, BAR_GAP, NAMES, VALUES = 14, 12, 150, 64  # of bars: height, distance, columns of names and of values


@dataclass(frozen=True, slots=True)
class Series:
    """A line or a cloud: its points (x, y), if known a band (x, low, high), and a name for each point."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart: a value for each of the chart's series."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places on the drawing, with the ticks between them."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 2)


def line_chart(
    series: Sequence[Series], *, title: str, x_label: str, y_label: str, steps: bool = False
) -> str:
    """Lines through the points, or stairs that hold each value until the next point."""
    shown = [finite(one) for one in series]
    top = TOP + legend_height(shown)
    x, y = plane(shown, top)
    drawn = "".join(
        group(number, band(one, x, y, steps) + line(one, x, y, steps) + dots(one, x, y, 2.5))
        for number, one in enumerate(shown)
    )
    return chart(title, frame(x, y, x_label, y_label) + legend([one.name for one in shown], line_key) + drawn)


def scatter_chart(
    series: Sequence[Series], *, title: str, x_label: str, y_label: str, diagonal: bool = False
) -> str:
    """Points; with the diagonal both axes have the same range, and y = x is drawn."""
    shown = [one for one in map(finite, series) if one.points]
    x, y = plane(shown, TOP + legend_height(shown), alike=diagonal)
    across = path([(x(x.low), y(x.low)), (x(x.high), y(x.high))], "diagonal") if diagonal else ""
    drawn = "".join(group(number, dots(one, x, y, 4, faint=False)) for number, one in enumerate(shown))
    return chart(
        title, frame(x, y, x_label, y_label) + across + legend([one.name for one in shown], dot_key) + drawn
    )


def bar_chart(bars: Sequence[Bar], *, series: Sequence[str], title: str, x_label: str) -> str:
    """Horizontal bars from zero, one for each value of a row below the other."""
    named = series if len(series) > 1 else ()
    top = TOP + LEGEND_ROW * len(legend_rows(named))
    height = BAR * len(series)
    x = scale(
        [0.0, *filter(isfinite, (value for bar in bars for value in bar.values))],
        NAMES,
        WIDTH - VALUES,
        whole=True,
        most=4,
    )
    bottom = top + max(1, len(bars)) * (height + BAR_GAP)
    rows = "".join(bar_row(bar, x, top + place * (height + BAR_GAP)) for place, bar in enumerate(bars))
    lines = "".join(path([(x(tick), top), (x(tick), bottom)], "grid-line") for tick in x.ticks)
    ticks = "".join(text(number(tick), x(tick), bottom + 16, "middle") for tick in x.ticks)
    zero = path([(x(0), top), (x(0), bottom)], "axis")
    label = text(x_label, (x.start + x.end) / 2, bottom + 36, "middle")
    return chart(title, lines + ticks + label + legend(named, box_key) + rows + zero, bottom + BOTTOM)


def standalone(svg: str, heading: str = "") -> str:
    """A drawing as a file of its own: on white, with its rules and their colours in it, and a heading if given."""
    x, y, width, height = map(float, re.search(r'viewBox="([^"]+)"', svg)[1].split())  # type: ignore[index]
    above = 30 if heading else 0
    box = f"{x:g} {y - above:g} {width:g} {height + above:g}"
    size = f'width="{width:g}" height="{height + above:g}"'
    start, rest = svg.split("</title>", 1)
    start = re.sub(r' (?:width|height|viewBox)="[^"]*"', "", start)
    start = start.replace("<svg", f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {size}', 1)
    ground = (
        f'<rect x="{x:g}" y="{y - above:g}" width="{width:g}" height="{height + above:g}" fill="#ffffff"/>'
    )
    title = text(heading, x + 12, y - 8, "start", "heading") if heading else ""
    return f"{start}</title><style>{resolved_rules()}</style>{ground}{title}{rest}\n"


def resolved_rules() -> str:
    """The figures' rules with each variable's value on light ground: drawing programs know no variables."""
    variables = dict(re.findall(r"(--[\w-]+): ([^;]+);", read("style.css")))
    rules = re.sub(r"/\*.*?\*/\s*", "", read("charts.css"), flags=re.DOTALL)
    rules = re.sub(r"var\((--[\w-]+)\)", lambda found: variables[found[1]], rules)
    return escape(re.sub(r"light-dark\(([^,]+), [^)]+\)", r"\1", rules), quote=False)


def chart(title: str, content: str, height: float = HEIGHT) -> str:
    """The drawing, which tells its title to those who hear a page."""
    name = safe(title)
    return (
        f'<svg class="chart" role="img" aria-label="{name}" viewBox="0 0 {WIDTH} {height:g}">'
        f"<title>{name}</title>{content}</svg>"
    )


def safe(label: object, longest: int = 200) -> str:
    """A text that stays a text in SVG and HTML: one line, no control characters, no markup."""
    return escape(quoted(label, longest)[1:-1])


def text(label: str, x: float, y: float, anchor: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text{kind} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{safe(label)}</text>'


def fitted(label: str, room: float) -> str:
    """As much of a label as there is room for, on one line."""
    name = quoted(label, 200)[1:-1]
    if width_of(name) <= room:
        return name
    while name and width_of(f"{name}\N{HORIZONTAL ELLIPSIS}") > room:
        name = name[:-1]
    return f"{name}\N{HORIZONTAL ELLIPSIS}"


def width_of(label: str) -> float:
    """About how wide a text is, rather too much than too little."""
    return LETTER * sum(map(letters_in, label))


def letters_in(letter: str) -> float:
    """How many small letters are as wide as this one, about."""
    if combining(letter):
        return 0.0
    if east_asian_width(letter) in "WF":
        return 2.0
    if letter in WIDE:
        return 1.6
    return 1.3 if letter.isupper() or letter == "w" else 0.65 if letter in NARROW else 1.0


def number(value: float) -> str:
    """A number in few letters: 0.25, 1,500, 20k, 3M."""
    units = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"), (0.0, 1.0, ""))
    _, unit, letter = next(row for row in units if abs(value) >= row[0])
    return f"{value / unit:,.4g}{letter}".replace("-", "\N{MINUS SIGN}")


def finite(series: Series) -> Series:
    """The series without points that have no place."""
    kept = [place for place, point in enumerate(series.points) if all(map(isfinite, point))]
    labels = [series.labels[place] for place in kept] if series.labels else ()
    points = [series.points[place] for place in kept]
    return Series(series.name, points, [row for row in series.band if all(map(isfinite, row))], labels)


def plane(series: Iterable[Series], top: float, alike: bool = False) -> tuple[Scale, Scale]:
    """The two axes that hold all points and bands."""
    series = list(series)
    xs = [point[0] for one in series for point in (*one.points, *one.band)]
    ys = [value for one in series for point in (*one.points, *one.band) for value in point[1:]]
    if alike:
        xs = ys = xs + ys
    x = scale(xs, LEFT, WIDTH - RIGHT, whole=alike, most=6)
    return x, scale(ys, HEIGHT - BOTTOM, top, whole=True, most=5)


def scale(values: Sequence[float], start: float, end: float, *, whole: bool, most: int) -> Scale:
    """A scale over the values with round ticks, at most about so many; `whole` ends on ticks."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-3):  # nothing that a reader could tell apart
        low, high = low - (abs(low) * 0.1 or 0.5), high + (abs(high) * 0.1 or 0.5)
    step = round_step((high - low) / most)
    if not step.is_integer() and all(float(value).is_integer() for value in values):
        step = max(1.0, 2 * step)  # half a trial is none
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = [float(f"{place * step:.12g}") for place in range(first, last + 1)]
    if whole:
        return Scale(ticks[0], ticks[-1], start, end, tuple(ticks))
    return Scale(low, high, start, end, tuple(tick for tick in ticks if low <= tick <= high))


def round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below."""
    power = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * (1 - 1e-9))


def frame(x: Scale, y: Scale, x_label: str, y_label: str) -> str:
    """Grid, ticks and what the axes are."""
    across = "".join(path([(x.start, y(tick)), (x.end, y(tick))], "grid-line") for tick in y.ticks)
    left = "".join(text(number(tick), x.start - 8, y(tick) + 4, "end") for tick in y.ticks)
    below = "".join(text(number(tick), x(tick), y.start + 18, "middle") for tick in x.ticks)
    axis = path([(x.start, y.start), (x.end, y.start)], "axis")
    middle = (y.start + y.end) / 2
    upwards = f'<g transform="rotate(-90 12 {middle:g})">{text(y_label, 12, middle, "middle")}</g>'
    return across + left + below + axis + text(x_label, (x.start + x.end) / 2, HEIGHT - 8, "middle") + upwards


def legend_rows(names: Sequence[str]) -> list[list[tuple[int, str, float]]]:
    """Each row's entries: number of the series, name, place; as many in a row as fit."""
    rows: list[list[tuple[int, str, float]]] = []
    place = inf
    for entry, full in enumerate(names):
        name = fitted(full, LEGEND_NAME)
        width = 34 + width_of(name)
        if place + width > WIDTH:
            rows.append([])
            place = 12
        rows[-1].append((entry, name, place))
        place += width
    return rows


def legend_height(series: Sequence[Series]) -> int:
    return LEGEND_ROW * len(legend_rows([one.name for one in series])) if len(series) > 1 else 0


def legend(names: Sequence[str], key: Callable[[float, float], str]) -> str:
    """What each colour is, by a key drawn at a place; nothing is said of a single series."""
    if len(names) < 2:
        return ""
    drawn = ""
    for number_of_row, row in enumerate(legend_rows(names)):
        y = TOP + 4 + number_of_row * LEGEND_ROW
        for entry, name, place in row:
            drawn += group(entry, key(place, y - 4)) + text(name, place + 23, y, "start", "strong")
    return drawn


def line_key(x: float, y: float) -> str:
    return path([(x, y), (x + 18, y)], "line")


def dot_key(x: float, y: float) -> str:
    return f'<circle class="fill" cx="{x + 10:g}" cy="{y:g}" r="5"/>'


def box_key(x: float, y: float) -> str:
    return box(x + 3, y - 6, 13, 11)


def group(number: int, content: str) -> str:
    return f'<g class="s{number % COLOURS + 1}">{content}</g>'


def path(points: Sequence[tuple[float, float]], kind: str, steps: bool = False) -> str:
    """A line through places of the drawing."""
    if not points:
        return ""
    moves = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for (_, before), (x, y) in pairwise(points):
        moves.append(f"H{x:g}V{y:g}" if steps and y != before else f"L{x:g} {y:g}")
    return f'<path class="{kind}" d="{"".join(moves)}"/>'


def line(series: Series, x: Scale, y: Scale, steps: bool) -> str:
    return path([(x(a), y(b)) for a, b in series.points], "line", steps)


def band(series: Series, x: Scale, y: Scale, steps: bool) -> str:
    """The surface between the low and the high edge."""
    if not series.band:
        return ""
    upper = [(x(a), y(high)) for a, _, high in series.band]
    lower = [(x(a), y(low)) for a, low, _ in series.band]
    edges = path(upper, "", steps).split('d="')[1].removesuffix('"/>')
    for (_, before), (a, b) in pairwise([(0.0, inf), *reversed(lower)]):
        edges += f"V{b:g}H{a:g}" if steps and before != inf else f"L{a:g} {b:g}"
    return f'<path class="band fill" d="{edges}Z"/>'


def dots(series: Series, x: Scale, y: Scale, radius: float, faint: bool = True) -> str:
    """The points, each telling its values under the pointer."""
    kind = "dot fill faint" if faint and len(series.points) > MOST_DOTS else "dot fill"
    labels = series.labels or [series.name] * len(series.points)
    return "".join(
        f'<circle class="{kind}" cx="{x(a):g}" cy="{y(b):g}" r="{radius:g}">'
        f"<title>{safe(label)}: {number(a)}, {number(b)}</title></circle>"
        for (a, b), label in zip(series.points, labels, strict=True)
    )


def box(x: float, y: float, width: float, height: float, hover: str = "") -> str:
    told = f"<title>{safe(hover)}</title>" if hover else ""
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect class="fill" x="{x:g}" y="{y:g}" {size} rx="1.5">{told}</rect>'


def bar_row(bar: Bar, x: Scale, y: float) -> str:
    """The bars of one row with its name before and its values behind."""
    drawn = ""
    for place, value in enumerate(bar.values):
        if not isfinite(value):
            continue
        top = y + place * BAR
        width = abs(x(value) - x(0))
        below = value < 0 and len(bar.values) == 1  # a loss among gains
        hover = f"{bar.name}: {number(value)}"
        drawn += group(place + below, box(min(x(0), x(value)), top, width, BAR - 2, hover))
        drawn += text(number(value), max(x(value), x(0)) + 5, top + 10.5, "start")
    middle = y + BAR * len(bar.values) / 2 + 3.5
    name = text(fitted(bar.name, NAMES - 10), NAMES - 8, middle, "end", "strong")
    return f"<g>{name}<title>{safe(bar.name)}</title></g>{drawn}"
