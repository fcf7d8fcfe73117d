"""Random structures and random group elements, for laws."""

from hypothesis import strategies as st

from autosf.algebra.invariance import entity_flipped, permuted, renamed
from autosf.algebra.structure import Structure


def structures(parts: int = 4, blocks: tuple[int, int] | None = None) -> st.SearchStrategy[Structure]:
    """Structures with any cells, or with a number of blocks in a range."""
    fewest, most = blocks or (0, parts * parts)
    places = st.lists(st.integers(0, parts * parts - 1), unique=True, min_size=fewest, max_size=most)
    value = st.sampled_from([sign * k for k in range(1, parts + 1) for sign in (1, -1)])

    def filled(chosen: list[int]) -> st.SearchStrategy[Structure]:
        return st.lists(value, min_size=len(chosen), max_size=len(chosen)).map(
            lambda values: with_cells(parts, dict(zip(chosen, values, strict=True)))
        )

    return places.flatmap(filled)


def with_cells(parts: int, cells: dict[int, int]) -> Structure:
    return Structure(tuple(tuple(cells.get(i * parts + j, 0) for j in range(parts)) for i in range(parts)))


def signs(parts: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from([1, -1]), min_size=parts, max_size=parts)


@st.composite
def twin_of(draw: st.DrawFn, structure: Structure, group: str) -> Structure:
    """An image of the structure under a random element of the group."""
    parts = structure.parts
    order = draw(st.permutations(range(1, parts + 1)))
    names = [
        s * k for s, k in zip(draw(signs(parts)), draw(st.permutations(range(1, parts + 1))), strict=True)
    ]
    image = renamed(permuted(structure, order), names)
    return entity_flipped(image, draw(signs(parts))) if group == "extended" else image
