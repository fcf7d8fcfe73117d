"""N-Triples, Turtle, RDF/XML and their kin, by way of pyoxigraph (the extra `rdf`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from autosf.counting import counted
from autosf.errors import UserError, lacks_extra, quoted, shown
from autosf.graph.knowledge_graph import LabelColumns
from autosf.graph.tables import Table
from autosf.graph.text_lines import opened

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = {
    "nt": "N_TRIPLES",
    "nq": "N_QUADS",
    "ttl": "TURTLE",
    "trig": "TRIG",
    "rdf": "RDF_XML",
    "xml": "RDF_XML",
    "owl": "RDF_XML",
}
# The parser's random names for nodes that the file leaves without one.
INVENTED = re.compile(r"[0-9a-f]{24,32}")


def read_rdf(path: Path, extension: str) -> Table:
    """The triples between resources: a label is an IRI or, for a blank node, `_:name`. No literals."""
    engine = oxigraph(path)
    heads: list[str] = []
    links: list[str] = []
    tails: list[str] = []
    literals = 0
    names: dict[str, str] = {}
    resources = (engine.NamedNode, engine.BlankNode)
    with opened(path) as stream:
        try:
            for quad in engine.parse(stream, format=getattr(engine.RdfFormat, FORMATS[extension])):
                if not isinstance(quad.object, resources):
                    literals += 1
                    continue
                heads.append(_label(quad.subject, names, path))
                links.append(quad.predicate.value)
                tails.append(_label(quad.object, names, path))
        except SyntaxError as error:
            reason = quoted(" ".join(str(error.msg).split()), longest=160)[1:-1]
            raise UserError(f"{shown(path)}:{error.lineno or 1}: {reason}") from None
    if not heads:
        raise UserError(
            f"{shown(path)}: expected triples between resources, found none and {counted(literals, 'literal')}"
        )
    columns = LabelColumns(*(pl.Series(values, dtype=pl.String) for values in (heads, links, tails)))
    warning = (
        f"{shown(path)}: left out {counted(literals, 'triple')} whose object is a literal, not a resource"
    )
    return Table(columns, warnings=(warning,) if literals else ())


def oxigraph(path: Path) -> Any:
    try:
        import pyoxigraph
    except ImportError:
        raise lacks_extra(f"{shown(path)}: reading RDF", "rdf") from None
    return pyoxigraph


def _label(node: Any, names: dict[str, str], path: Path) -> str:
    """A resource's text. Nodes without a name are numbered as they come: reading twice gives one graph."""
    value: str = node.value
    if not str(node).startswith("_:"):
        return value
    if INVENTED.fullmatch(value):
        value = names.setdefault(value, f"unnamed-{path.name.partition('.')[0]}-{len(names) + 1}")
    return f"_:{value}"
