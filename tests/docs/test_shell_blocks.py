"""Every `autosf` command in a shell block of the documents is one that works.

What a block takes for granted is there: graphs under the names used, a finished search, which also serves as a
model, a recipe. Trainings are cut short. A form of a command (its options) is run once; further lines of that
form, and those that need a server or a cluster, are parsed.
"""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from autosf.app.cli import autosf, run
from autosf.graph.synthetic import patterned_graph
from autosf.graph.writing import write_graph

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
GRAPHS = ("WN18RR", "FB15k-237", "UMLS", "Kinships", "WN18")  # by name; the others are folders
FOLDERS = ("my-graph", "towns", "countries")
RUNS = ("run", "random-run", "my-run", "found", "model", "my-model", "wn18rr", "found-umls", "found-kinships")
ELSEWHERE = {"serve", "--cluster", "mlflow:http://tracking.example:5000"}
SHORT = {
    "search": "--trials 10 --epochs 2 --dimension 8 --workers 1",
    "train": "--epochs 2 --dimension 8",
    "tune": "--trials 2 --set epochs=2 --set dimension=8",
    "compare": "--epochs 2 --dimension 8 --seeds 1",
    "demo": "--budget 5s",
}
LARGE = {"--on-disk": '--set loss="sampled-softmax"'}  # what a graph as large as the page's has by itself
LONG = re.compile(r" --(budget|trials|seeds) \S+")


def commands(page: Path) -> list[str]:
    lines = [line for block in FENCE.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    pieces = [piece.strip(" &") for line in lines for piece in line.partition("  #")[0].split("&&")]
    return [piece.partition(" > ")[0] for piece in pieces if piece.startswith("autosf ")]


def form(command: str) -> tuple[str, ...]:
    words = shlex.split(command)
    return (words[1], *sorted(word for word in words if word.startswith("--")))


def is_run_elsewhere(command: str) -> bool:
    return bool(ELSEWHERE & set(shlex.split(command)))


ALL = [(page.name, command) for page in PAGES for command in commands(page)]
FORMS = {form(command): (page, command) for page, command in reversed(ALL) if not is_run_elsewhere(command)}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder in which the commands of the documents find what they name."""
    place = tmp_path_factory.mktemp("world")
    graph = patterned_graph(symmetric=1, general=1, entities=30, triples=60, valid=0.1, test=0.1)
    write_graph(graph, place / "plain", "tsv")
    entity, relation = graph.entities.labels[0], graph.relations.labels[0]
    named = {entity: "X", relation: "R"}
    for path in (place / "plain").iterdir():
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        path.write_text("".join("\t".join(named.get(word, word) for word in row) + "\n" for row in rows))
    for name in (*(f"data/{graph}" for graph in GRAPHS), *FOLDERS):
        shutil.copytree(place / "plain", place / name)
    lines = (place / "plain" / "train.tsv").read_text().splitlines()
    for name in ("all-triples.tsv", "towns.tsv"):
        (place / name).write_text("\n".join(lines) + "\n")
    (place / "log.csv").write_text("when|who|how|whom\n1999|ann|knows|bob\n")
    (place / "recipe.toml").write_text("learning_rate = 0.2\n")
    (place / "questions.tsv").write_text("X\tR\t?\n?\tR\tX\n")
    before = Path.cwd()
    os.chdir(place)
    try:
        for command in (
            f"search my-graph --out run {SHORT['search']}",
            f"tune my-graph --out tuned {SHORT['tune']}",
        ):
            assert run(shlex.split(command)) == 0
    finally:
        os.chdir(before)
    for name in RUNS[1:]:
        shutil.copytree(place / "run", place / name)
    for name in ("my-graph-tuned", "wn18rr-tuned"):
        shutil.copytree(place / "tuned", place / name)
    return place


@pytest.mark.parametrize(("page", "command"), ALL, ids=[f"{page}: {command}" for page, command in ALL])
def test_a_command_of_the_documents_can_be_parsed(page, command):
    name, *rest = shlex.split(command)[1:]
    if name == "data":
        group = autosf.get_command(None, "data")
        name, *rest = rest
        group.get_command(None, name).make_context(name, rest)
    else:
        autosf.get_command(None, name).make_context(name, rest)


@pytest.mark.slow
# The warnings are MLflow's.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize(("page", "command"), FORMS.values(), ids=[" ".join(words) for words in FORMS])
def test_a_command_of_the_documents_runs(page, command, world, monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOSF_DATA", str(world / "data"))
    monkeypatch.chdir(shutil.copytree(world, tmp_path / "here"))
    words = shlex.split(LONG.sub("", command))[1:]
    asked = [{"town3": "X", "north_of": "R"}.get(word, word) for word in words]
    if "--out" in asked and "--resume" not in asked:
        shutil.rmtree(asked[asked.index("--out") + 1], ignore_errors=True)
    elif asked[:1] == ["train"] and "--resume" in asked:
        shutil.rmtree(asked[asked.index("--out") + 1])
    more = [SHORT.get(words[0], ""), *(LARGE[word] for word in words if word in LARGE)]
    assert run([*asked, *shlex.split(" ".join(more))]) == 0
