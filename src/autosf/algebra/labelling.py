"""The best entity order of a large structure, found without listing all K! of them.

Individualisation and refinement, as graph canonisers do: entity parts are coloured by what they look like,
colours are refined until stable, a tied part is singled out, and so on to a full order. Two orders with the
same result differ by a symmetry of the structure; symmetries cut the branches that could only repeat it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Cells = tuple[int, ...]
Colours = tuple[int, ...]
MOST_ORDERS = 1_000  # some seconds; only parts that nothing but signs tells apart have more


def best_order(cells: Cells, parts: int, signed: Callable[[Cells], Cells]) -> Cells:
    """The largest `signed` image over the entity orders that refinement cannot tell apart."""
    search = Labelling(cells, parts, signed)
    search.explore((), tuple([0] * parts))
    return search.best


class Labelling:
    """One search over entity orders: owns the best image so far and the symmetries met on the way."""

    def __init__(self, cells: Cells, parts: int, signed: Callable[[Cells], Cells]) -> None:
        self.cells, self.parts, self.signed = cells, parts, signed
        self.best: Cells = ()
        self.best_order: Sequence[int] = ()
        self.best_path: tuple[int, ...] = ()
        self.symmetries: list[dict[int, int]] = []
        self.orders = 0

    def explore(self, path: tuple[int, ...], colours: Colours) -> int:
        """Visit all orders that single out `path` first; returns the depth to fall back to."""
        colours = refined(self.cells, self.parts, colours)
        tied = first_tie(colours)
        if not tied:
            return self.finish(path, colours)
        seen: set[int] = set()
        for part in tied:
            if part in seen:
                continue
            singled = tuple(2 * c + (p != part) for p, c in enumerate(colours))
            depth = self.explore((*path, part), singled)
            if depth < len(path):
                return depth
            seen = self.orbit(seen | {part}, path)
        return len(path)

    def finish(self, path: tuple[int, ...], colours: Colours) -> int:
        """A full order: keep it if it is better; if it repeats the best, note the symmetry and fall back."""
        self.orders += 1
        if self.orders > MOST_ORDERS:
            raise UserError(
                f"a structure of {self.parts} parts so alike that no form of it can be found in time"
            )
        order = sorted(range(self.parts), key=colours.__getitem__)
        image = self.signed(tuple([self.cells[i * self.parts + j] for i in order for j in order]))
        if image == self.best:
            self.symmetries.append(dict(zip(self.best_order, order, strict=True)))
            return next(d for d, (a, b) in enumerate(zip(path, self.best_path, strict=True)) if a != b)
        if image > self.best:
            self.best, self.best_order, self.best_path = image, order, path
        return len(path)

    def orbit(self, parts: set[int], path: tuple[int, ...]) -> set[int]:
        """All parts that the known symmetries fixing `path` carry the given ones to."""
        moves = [s for s in self.symmetries if all(s[part] == part for part in path)]
        reached, frontier = set(parts), list(parts)
        while frontier:
            part = frontier.pop()
            new = {move[part] for move in moves} - reached
            reached |= new
            frontier.extend(new)
        return reached


def refined(cells: Cells, parts: int, colours: Colours) -> Colours:
    """Colours split until parts of one colour see the same relations and partners in every way."""
    while True:
        labels = label_colours(cells, parts, colours)
        looks = [look(cells, parts, colours, labels, part) for part in range(parts)]
        ranks = {seen: rank for rank, seen in enumerate(sorted(set(looks)))}
        new = tuple(ranks[seen] for seen in looks)
        if len(ranks) == len(set(colours)):
            return new
        colours = new


def label_colours(cells: Cells, parts: int, colours: Colours) -> dict[int, tuple[tuple[int, int], ...]]:
    """For each relation part, where it occurs, in colours: independent of its name."""
    places: dict[int, list[tuple[int, int]]] = {}
    for place, cell in enumerate(cells):
        if cell:
            places.setdefault(abs(cell), []).append((colours[place // parts], colours[place % parts]))
    return {label: tuple(sorted(found)) for label, found in places.items()}


def look(
    cells: Cells, parts: int, colours: Colours, labels: dict[int, tuple[tuple[int, int], ...]], part: int
) -> tuple[object, ...]:
    """What one entity part looks like: its colour, then its row, column and diagonal in colours."""
    row = sorted((colours[j], labels[abs(c)]) for j in range(parts) if (c := cells[part * parts + j]))
    column = sorted((colours[i], labels[abs(c)]) for i in range(parts) if (c := cells[i * parts + part]))
    return (colours[part], bool(cells[part * parts + part]), tuple(row), tuple(column))


def first_tie(colours: Colours) -> list[int]:
    """Parts of the first colour that more than one part has; empty when all are told apart."""
    for colour in sorted(set(colours)):
        tied = [part for part, c in enumerate(colours) if c == colour]
        if len(tied) > 1:
            return tied
    return []
