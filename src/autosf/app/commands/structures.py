"""`autosf show`, `autosf space` and `autosf zoo`: the search space, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, json_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from autosf.algebra.structure import Structure

SHOWN_PARTS = 16  # what `show` computes in a moment; structures themselves may be larger


@click.command(epilog="Example: autosf show complex")
@click.argument("structure", shell_complete=completing.structures)
@click.option("--published", is_flag=True, help="Read STRUCTURE as a list of the released code: 2,1,3,0")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Also write the drawing here.")
@json_option
def show(structure: str, published: bool, svg: Path | None, as_json: bool) -> None:
    """Draw a scoring function and tell its properties.

    STRUCTURE is a name (distmult, complex, analogy, simple, quate, autosf-wn18, ...) or its rows as JSON,
    such as '[[1,2],[-2,1]]': cell s*k in row i, column j is the term s * <h_i, r_k, t_j>. Or the folder of a
    run, for the best it has found, or of a model.
    """
    shown = read_structure(structure, published)
    result = described(shown)
    if svg:
        write_svg(shown, svg)
        result["svg"] = str(svg)
    answer(result, as_json, lambda: portrait(shown, result))


@click.command(epilog="Example: autosf space 6 --group extended --reachable")
@click.argument("blocks", type=int)
@click.option(
    "--group",
    type=click.Choice(["paper", "extended"]),
    default="paper",
    show_default=True,
    help="Equivalences: the paper's, or also sign flips of entity parts.",
)
@click.option(
    "--constraint",
    type=click.Choice(["cover", "c2"]),
    default="cover",
    show_default=True,
    help="cover: all relation parts, no zero row or column; c2: also no repeated ones.",
)
@click.option("--reachable", is_flag=True, help="Only what grows from the five f^4, as Alg. 2 does.")
@json_option
def space(blocks: int, group: str, constraint: str, reachable: bool, as_json: bool) -> None:
    """Count the scoring functions with BLOCKS terms.

    Equivalent ones count once; embeddings have four parts. Up to seven blocks the classes are listed, so that
    those satisfying C1 can be counted; beyond, Burnside's lemma counts them and c1_classes is null.
    """
    from autosf.algebra.space import space as counted

    if blocks == 7 and not reachable:
        click.echo("listing some 676,000 classes, about half a minute ...", err=True)
    count = counted(blocks, group, constraint, reachable)  # type: ignore[arg-type]  # click has checked them
    result = {
        "blocks": blocks,
        "classes": count.classes,
        "c1_classes": count.c1_classes,
        "group": group,
        "constraint": constraint,
        "reachable": reachable,
    }
    answer(result, as_json, lambda: space_told(result))


@click.command(epilog="Example: autosf zoo")
@json_option
def zoo(as_json: bool) -> None:
    """Show the scoring functions that are known.

    Those that people designed and those that the paper's search found, drawn with what each can model.
    """
    from autosf.algebra.zoo import ZOO

    result = {"zoo": [described(known.structure) for known in ZOO]}
    answer(result, as_json, gallery)


def read_structure(text: str, published: bool) -> Structure:
    """The structure a user gave on the command line, of a size that can be described at once."""
    from autosf.algebra.structure import from_published
    from autosf.algebra.zoo import structure_from
    from autosf.errors import UserError, quoted

    if published:
        try:
            numbers = [int(number) for number in text.strip().strip("[]").split(",")]
        except ValueError:
            raise UserError(f"published list: expected integers and commas, found {quoted(text)}") from None
        return from_published(numbers)
    if Path(text).is_dir():  # of a run or a model; reading these takes more packages
        from autosf.app.run_results import structure_meant

        structure = structure_meant(text)
    else:
        structure = structure_from(text)
    if structure.parts > SHOWN_PARTS:
        raise UserError(f"structure: expected at most {SHOWN_PARTS} rows to show, found {structure.parts}")
    return structure


def described(structure: Structure) -> dict[str, Any]:
    """All that `autosf show` tells, under the keys that programs rely on."""
    from dataclasses import asdict

    from autosf.algebra.constraints import (
        c2_reasons,
        inverting_names,
        is_reachable,
        relation_kinds,
        satisfies_c1,
        skew_symmetric,
        symmetric,
    )
    from autosf.algebra.disguise import twins
    from autosf.algebra.features import srf
    from autosf.algebra.invariance import canonical
    from autosf.algebra.summands import summands
    from autosf.app.drawing import formula

    even, odd = symmetric(structure), skew_symmetric(structure)
    found = twins(structure)
    return {
        "rows": structure.rows,
        "parts": structure.parts,
        "blocks": structure.blocks,
        "terms": [asdict(term) for term in structure.terms()],
        "formula": formula(structure),
        "canonical": canonical(structure).rows,
        "canonical_extended": canonical(structure, "extended").rows,
        "srf": srf(structure),
        "symmetric": even.values if even.possible else None,
        "skew_symmetric": odd.values if odd.possible else None,
        "inverse": inverting_names(structure),
        "relation_kinds": relation_kinds(structure),
        "summands": [each._asdict() for each in summands(structure)],
        "c1": satisfies_c1(structure),
        "c2": not c2_reasons(structure),
        "c2_reasons": c2_reasons(structure),
        "names": [name for twin in found for name in twin.known.names],
        "twins": [{"name": t.known.name, "how": t.how, "source": t.known.source} for t in found],
        "reachable": is_reachable(structure),
    }


def portrait(structure: Structure, result: dict[str, Any]) -> RenderableType:
    """The drawing with its properties beside it."""
    from rich.padding import Padding
    from rich.table import Table

    from autosf.app.drawing import as_text

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in facts_in_words(structure, result):
        facts.add_row(name, value)
    page = Table.grid(padding=(0, 4))
    page.add_row(as_text(structure), facts)
    return Padding(page, (1, 0))


def facts_in_words(structure: Structure, result: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each line beside the drawing."""
    from autosf.algebra.constraints import skew_symmetric, symmetric

    pairs = zip(result["srf"][::2], result["srf"][1::2], strict=True)
    facts = [
        ("known as", "; ".join(map(introduced, result["twins"])) or "nothing in the zoo"),
        ("rows", str(structure)),
        ("score", result["formula"]),
        ("symmetric", told(str(symmetric(structure)))),
        ("skew-symmetric", told(str(skew_symmetric(structure)))),
        ("inverses", inverses_told(result["inverse"])),
        (
            "models",
            ", ".join(result["relation_kinds"]) + " relations" if result["relation_kinds"] else "nothing",
        ),
        ("summands", summands_told(result["summands"])),
        ("C1", "holds" if result["c1"] else "fails: it needs to be symmetric for some r, skew for another"),
        ("C2", "holds" if result["c2"] else "fails: " + ", ".join(result["c2_reasons"])),
        ("SRF", " ".join(f"{even}{odd}" for even, odd in pairs)),
        ("Alg. 2", "reaches it" if result["reachable"] else "cannot reach it: it contains no f^4"),
    ]
    return facts if structure.parts <= 8 else [fact for fact in facts if fact[0] != "SRF"]


def introduced(twin: dict[str, str]) -> str:
    """A known function by name, and why it is this one if that cannot be seen at once."""
    disguise = "" if twin["how"] == "the same rows" else f" in disguise, {twin['how']}"
    return f"{twin['name']}{disguise} ({twin['source']})"


def told(assignment: str) -> str:
    """An assignment in words."""
    return assignment if assignment in ("always", "never") else f"when {assignment}"


def inverses_told(names: tuple[int, ...] | None) -> str:
    """Whether g(r)^T = g(r') has a solution r' for every r, and which."""
    if names is None:
        return "not of every relation"
    return "of every r: " + ", ".join(f"-r{-name}" if name < 0 else f"r{name}" for name in names)


def summands_told(each: list[dict[str, tuple[int, ...]]]) -> str:
    """How many sums without a part in common it is, each by its parts of the head."""
    if len(each) <= 1:
        return "one: all its parts are mixed" if each else "none"
    parts = [" ".join(f"h{part}" for part in summand["head"]) for summand in each]
    return f"{len(each)} that share no part: {' | '.join(parts)}"


def gallery() -> list[RenderableType]:
    """The zoo, three in a row: drawing, name, and what each can model."""
    from rich.padding import Padding
    from rich.table import Table

    from autosf.algebra.zoo import ZOO

    page = Table.grid(padding=(1, 4, 0, 0))
    cards = [card(known.title, known.structure) for known in ZOO]
    for start in range(0, len(cards), 3):
        page.add_row(*cards[start : start + 3])
    words = (
        "A scoring function is a 4x4 matrix of signed relation parts: cell r3 in row 1, column 2 is the term"
        " <h1, r3, t2>, an underlined one is subtracted. No single one is best on all graphs."
    )
    hint = "Look closer: autosf show complex      How many there are: autosf space 6"
    return [Padding(words, (1, 0, 0, 0)), page, Padding(hint, (1, 0))]


def card(title: str, structure: Structure) -> RenderableType:
    """One member of the gallery."""
    from rich.console import Group
    from rich.text import Text

    from autosf.algebra.constraints import is_reachable, relation_kinds, satisfies_c1
    from autosf.app.drawing import as_text

    facts = Text.assemble(
        (title, "bold"),
        f"  {structure.blocks} terms\n",
        as_text(structure),
        (f"\nC1 {'holds' if satisfies_c1(structure) else 'fails'}; ", "dim"),
        (f"Alg. 2 {'reaches it' if is_reachable(structure) else 'cannot reach it'}\n", "dim"),
        (", ".join(relation_kinds(structure)), "dim"),
    )
    return Group(facts)


def space_told(result: dict[str, Any]) -> str:
    """The count in a sentence."""
    which = "reachable by Alg. 2, " if result["reachable"] else ""
    c1 = result["c1_classes"]
    expressive = f"{c1:,} of them satisfy C1" if c1 is not None else "C1 not counted beyond 7 blocks"
    return (
        f"{result['classes']:,} classes with {result['blocks']} blocks"
        f" ({which}{result['group']} group, {result['constraint']}); {expressive}"
    )


def write_svg(structure: Structure, path: Path) -> None:
    """Write the drawing; nothing half-written is left."""
    from autosf.app.charts import standalone
    from autosf.app.drawing_svg import structure_svg
    from autosf.whole import write_whole

    write_whole(path, standalone(structure_svg(structure)))
