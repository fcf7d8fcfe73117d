"""`autosf data ...`, as a user types it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autosf.app.commands.data import DownloadBars, data
from autosf.errors import UserError
from autosf.graph.download import Progress
from autosf.graph.registry import packaged_folders

KEYS = [
    "entities",
    "relations",
    "train",
    "valid",
    "test",
    "tail_queries",
    "head_queries",
    "patterns",
    "unseen",
    "duplicates",
    "leaked",
]
packaged = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")


@pytest.fixture(autouse=True)
def own_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No graph is at hand but the packaged ones and those of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("AUTOSF_DATA", raising=False)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(data, [str(argument) for argument in arguments], catch_exceptions=False)


def result(*arguments: object) -> dict:
    ran = run(*arguments, "--json")
    assert ran.exit_code == 0
    return json.loads(ran.stdout)


def write(folder: Path, **splits: list[tuple[str, str, str]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def ring(count: int, relation: str = "next") -> list[tuple[str, str, str]]:
    return [(f"e{i}", relation, f"e{(i + step) % count}") for i in range(count) for step in (1, 2, 3)]


@packaged
def test_stats_of_a_packaged_graph_need_no_network():
    found = result("stats", "umls")
    assert set(KEYS) <= set(found)
    assert found["graph"] == "UMLS"
    assert (found["entities"], found["relations"], found["train"]) == (135, 46, 5216)
    assert found["patterns"] == {"symmetric": 0, "anti_symmetric": 11, "inverse": 1, "general": 34}
    assert found["unseen"] == {"entities": 0, "relations": 0, "valid_triples": 0, "test_triples": 0}
    assert len(found["relations_detail"]) == 46


@packaged
def test_stats_for_people_begin_with_what_is_wrong():
    lines = run("stats", "UMLS").stdout.splitlines()
    assert lines[0] == "! 4.4 % of test triples can be answered from an inverse relation in train"
    text = "\n".join(lines)
    for word in (
        "entities",
        "135",
        "anti-symmetric",
        "N-N",
        "affects",
        "Relations that give test answers away",
    ):
        assert word in text


def test_stats_name_the_inverse_partner_and_what_it_gives_away(tmp_path: Path):
    train = [(f"a{i}", "owns", f"b{i}") for i in range(10)] + [
        (f"b{i}", "owned by", f"a{i}") for i in range(9)
    ]
    folder = write(tmp_path / "g", train=train, valid=train[:1], test=[("b9", "owned by", "a9")])
    found = result("stats", folder)
    partners = {row["relation"]: row["partner"] for row in found["relations_detail"]}
    assert partners == {"owns": "owned by", "owned by": "owns"}
    assert found["leaked"]["share"] == 1.0
    assert found["leaked"]["pairs"][0]["source"] == "owns"
    assert found["shared"] == {"train_valid": 1, "train_test": 0, "valid_test": 0}
    assert [line for line in found["warnings"] if "also" in line] == ["1 valid triple is also in train"]
    assert run("stats", folder).stdout.count("also in train") == 1


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ((), "2 relations"),
        (("--relations", 2), "2 relations"),
        (("--relations", 1), "The largest of 2 relations"),
    ],
)
def test_stats_say_how_many_of_the_relations_they_show(tmp_path: Path, options, title: str):
    folder = write(tmp_path / "g", train=ring(5) + ring(5, "other"))
    assert title in run("stats", folder, *options).stdout.splitlines()


def test_stats_can_do_without_the_table_of_relations(tmp_path: Path):
    folder = write(tmp_path / "g", train=ring(5))
    assert "tails/head" in run("stats", folder).stdout
    assert "tails/head" not in run("stats", folder, "--relations", 0).stdout
    assert run("stats", folder, "--relations", -1).exit_code == 2


def test_stats_of_one_file_do_not_split_it(tmp_path: Path):
    file = write(tmp_path, all=ring(20)) / "all.tsv"
    found = result("stats", file)
    assert (found["train"], found["valid"], found["test"]) == (60, 0, 0)


def test_stats_of_train_alone_are_given(tmp_path: Path):
    found = result("stats", write(tmp_path / "g", train=ring(20)))
    assert (found["train"], found["valid"], found["test"]) == (60, 0, 0)


def test_labels_of_strangers_are_shown_as_they_are(tmp_path: Path):
    rows = [("[red]a[/red]", "<script>alert(1)</script>", "\x1b[31mb"), ("😀", "[bold]", "שלום")]
    folder = write(tmp_path / "g", train=rows)
    shown = run("stats", folder).stdout
    assert "<script>alert(1)</script>" in shown
    assert "[bold]" in shown
    assert "\x1b[31m" not in shown
    assert result("stats", folder)["relations_detail"][0]["relation"] in (
        "<script>alert(1)</script>",
        "[bold]",
    )


def test_an_unknown_graph_is_answered_with_the_nearest():
    with pytest.raises(UserError, match='did you mean "fb15k-237"'):
        run("stats", "fb15k-273")
    with pytest.raises(UserError, match="autosf data get FB15k-237"):
        run("stats", "fb15k-237")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("nothere.tsv", "nothere.tsv: there is no such file or folder"),
        ("no/such", "no/such: there is no such file or folder"),
        ("nothere", 'unknown graph "nothere", and no such folder; see: autosf data list'),
        ("yago3.10-x", 'unknown graph "yago3.10-x", and no such folder; did you mean "yago3-10"?'),
    ],
)
def test_a_missing_file_is_not_called_an_unknown_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, told: str
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as raised:
        run("stats", word)
    assert str(raised.value) == told


@pytest.mark.parametrize("command", [["stats"], ["split", "--out", "new"]])
def test_an_empty_name_is_not_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command):
    monkeypatch.chdir(write(tmp_path / "g", train=ring(10), valid=ring(5)))
    with pytest.raises(UserError, match='expected a graph: a folder, a file or a name, found ""'):
        run(*command, "")


def test_a_graph_in_the_data_folder_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "graphs" / "Ring-20", train=ring(20), valid=[], test=[])
    monkeypatch.setenv("AUTOSF_DATA", str(tmp_path / "graphs"))
    (tmp_path / "graphs" / "Ring-20" / "valid.tsv").write_text("e0\tnext\te5\n")
    (tmp_path / "graphs" / "Ring-20" / "test.tsv").write_text("e1\tnext\te6\n")
    assert result("stats", "ring_20")["train"] == 60
    listed = {row["name"]: row for row in result("list")["graphs"]}
    assert listed["Ring-20"]["path"] == str(tmp_path / "graphs" / "Ring-20")


@packaged
def test_list_says_which_graphs_are_at_hand_and_where():
    listed = {row["name"]: row["path"] for row in result("list")["graphs"]}
    assert {name for name, path in listed.items() if path} == {"UMLS", "Kinships", "Nations"}
    assert listed["UMLS"].endswith("umls")
    shown = run("list").stdout
    assert "YAGO3-10" in shown
    assert "autosf data get NAME" in shown


def test_split_writes_a_folder_that_is_read_back(tmp_path: Path):
    file = write(tmp_path, all=ring(40)) / "all.tsv"
    made = result("split", file, "--out", tmp_path / "out", "--valid", "10", "--test", 0.1, "--seed", 3)
    assert (made["train"], made["valid"], made["test"]) == (98, 10, 12)
    assert made["missing"] == 0
    found = result("stats", tmp_path / "out")
    assert (found["train"], found["valid"], found["test"]) == (98, 10, 12)
    assert found["unseen"]["entities"] == 0
    assert found["shared"] == {"train_valid": 0, "train_test": 0, "valid_test": 0}


def test_split_is_the_same_for_the_same_seed_in_any_row_order(tmp_path: Path):
    rows = ring(40)
    write(tmp_path, one=rows, two=rows[::-1] + rows[:5])
    for name in ("one", "two"):
        result("split", tmp_path / f"{name}.tsv", "--out", tmp_path / name)
    assert result("stats", tmp_path / "one")["digest"] == result("stats", tmp_path / "two")["digest"]
    result("split", tmp_path / "one.tsv", "--out", tmp_path / "other", "--seed", 1)
    assert result("stats", tmp_path / "one")["digest"] != result("stats", tmp_path / "other")["digest"]


def test_split_says_how_many_could_be_had(tmp_path: Path):
    write(tmp_path, star=[("hub", "r", f"leaf{i}") for i in range(20)] + [("leaf0", "r", "leaf1")])
    arguments = ("split", tmp_path / "star.tsv", "--valid", 5, "--test", 5, "--out")
    made = result(*arguments, tmp_path / "out")
    assert made["missing"] == 10 - made["available"] > 0
    shown = run(*arguments, tmp_path / "again").stdout
    assert "fewer than asked for" in shown
    assert f"only {made['available']} triples can leave train" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("options", "content"),
    [
        (["--columns", "1,2,3"], "0,{},{},{}\n"),
        (["--columns", "who, how, whom"], "when,who,how,whom\n" + "0,{},{},{}\n"),
        (["--columns", "1,2,3", "--header", "--delimiter", "|"], "x|y|z|w\n" + "0|{}|{}|{}\n"),
        (["--no-header", "--delimiter", "semicolon"], "{};{};{}\n"),
        (["--delimiter", "\\t"], "{}\t{}\t{}\n"),
    ],
)
def test_split_makes_a_clean_folder_of_an_odd_file(tmp_path: Path, options: list[str], content: str):
    header, _, line = content.removesuffix("\n").rpartition("\n")
    rows = "".join(f"{line}\n".format(*row) for row in ring(20))
    (tmp_path / "odd.csv").write_text(f"{header}\n{rows}")
    made = result("split", tmp_path / "odd.csv", *options, "--out", tmp_path / "out")
    assert (made["train"], made["valid"], made["test"]) == (48, 6, 6)
    found = result("stats", tmp_path / "out")
    assert (found["entities"], found["relations"]) == (20, 1)
    assert found["relations_detail"][0]["relation"] == "next"


def test_split_tells_what_reading_found_odd(tmp_path: Path):
    write(tmp_path, odd=[("Person", "Does", "Thing"), *ring(10)])
    shown = run("split", tmp_path / "odd.tsv", "--out", tmp_path / "out").stdout
    assert "taken for a triple, though none of its labels comes again" in " ".join(shown.split())
    clean = result("split", tmp_path / "odd.tsv", "--header", "--out", tmp_path / "clean")
    assert clean["warnings"] == []
    assert clean["relations"] == 1


@pytest.mark.parametrize("sizes", [(0.6, 0.6), (0.5, 0.5), (90, 0), (60, 30), (0.5, 45), (1000, 0.1)])
def test_split_refuses_sizes_that_leave_nothing(tmp_path: Path, sizes):
    folder = write(tmp_path / "graph", train=ring(30))
    valid, test = sizes
    told = f"valid {valid}, test {test}: expected less than all of 90 triples"
    with pytest.raises(UserError, match=told):
        run("split", folder, "--out", tmp_path / "s", "--valid", valid, "--test", test)
    assert not (tmp_path / "s").exists()


def test_split_refuses_columns_that_are_not_three(tmp_path: Path):
    file = write(tmp_path, all=ring(10)) / "all.tsv"
    with pytest.raises(UserError, match="columns: expected three different ones, found place 1 twice"):
        run("split", file, "--columns", "0,1,1", "--out", tmp_path / "out")
    with pytest.raises(UserError, match="columns: expected three names or places"):
        run("split", file, "--columns", "0,1", "--out", tmp_path / "out")


def test_split_joins_the_splits_of_a_folder(tmp_path: Path):
    rows = ring(40)
    folder = write(tmp_path / "g", train=rows[:100], valid=rows[100:110], test=rows[105:])
    made = result("split", folder, "--out", tmp_path / "out")
    assert made["train"] + made["valid"] + made["test"] == 120
    assert made["duplicates"] == 5


def test_split_can_drop_relations_that_leak(tmp_path: Path):
    rows = ring(40)
    back = [(tail, "previous", head) for head, _, tail in rows[:-2]]
    write(tmp_path, both=rows + back)
    made = result("split", tmp_path / "both.tsv", "--out", tmp_path / "out", "--remove-leakage")
    assert made["dropped"] == [{"relation": "previous", "kept": "next", "kind": "inverse"}]
    assert made["dropped_triples"] == 118
    assert result("stats", tmp_path / "out")["leaked"]["share"] == 0
    shown = run("split", tmp_path / "both.tsv", "--out", tmp_path / "more", "--remove-leakage").stdout
    assert "Dropped relations" in shown


def test_split_refuses_a_folder_that_is_in_use(tmp_path: Path):
    file = write(tmp_path / "g", all=ring(10)) / "all.tsv"
    with pytest.raises(UserError):
        run("split", file, "--out", tmp_path / "g")
    assert [path.name for path in (tmp_path / "g").iterdir()] == ["all.tsv"]


@packaged
def test_get_of_a_graph_at_hand_needs_no_network():
    found = result("get", "umls")
    assert found["path"].endswith("umls")
    assert "licence" in run("get", "UMLS").stdout


def test_progress_goes_to_stderr_alone(capsys: pytest.CaptureFixture[str]):
    address = "https://example.org/fetch.php?media=en:wordnet.tar.gz"
    with DownloadBars() as bars:
        for done in (0, 500_000, 1_000_000):
            bars.report(Progress(address, done, 1_000_000))
        bars.report(Progress("https://example.org/[red]/test.txt", 10, None))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "wordnet.tar.gz" in shown.err
    assert "1.0/1.0 MB" in shown.err


def test_get_of_an_unknown_graph_is_refused():
    with pytest.raises(UserError, match='did you mean "yago3-10"'):
        run("get", "yago310x")


def test_synthetic_writes_a_graph_of_the_ordered_size(tmp_path: Path):
    sizes = ("--entities", 100, "--relations", 5, "--triples", 500, "--valid", 20, "--test", 30)
    result("synthetic", *sizes, "--out", tmp_path / "s", "--form", "tsv.gz")
    found = result("stats", tmp_path / "s")
    assert [found[key] for key in KEYS[:5]] == [100, 5, 450, 20, 30]


def test_a_small_synthetic_graph_has_a_tenth_each_in_valid_and_test(tmp_path: Path):
    made = result(
        "synthetic", "--entities", 100, "--relations", 5, "--triples", 1000, "--out", tmp_path / "s"
    )
    assert (made["valid"], made["test"]) == (100, 100)
    found = result("stats", tmp_path / "s")
    assert [found[key] for key in KEYS[:5]] == [100, 5, 800, 100, 100]


@pytest.mark.parametrize("name", ["stats", "split", "list", "get", "synthetic"])
def test_every_command_has_a_sentence_and_an_example(name: str):
    shown = run(name, "--help").stdout
    assert f"Example: autosf data {name}" in shown
    assert "--json" in shown


def test_split_can_leave_an_official_test_split_as_it_is(tmp_path: Path):
    graph = write(tmp_path / "g", train=ring(40), test=[("n1", "next", "n9"), ("n5", "next", "n2")])
    told = result("split", graph, "--keep-test", "--valid", 5, "--out", tmp_path / "kept")
    assert told["train"] + told["valid"] == len(ring(40))
    assert (told["valid"], told["missing"], told["test"]) == (5, 0, 2)
    assert (tmp_path / "kept/test.tsv").read_text().splitlines() == ["n1\tnext\tn9", "n5\tnext\tn2"]
    alone = write(tmp_path / "alone", train=ring(40))
    for options in ((graph, "--remove-leakage"), (alone,)):
        assert run("split", *options, "--keep-test", "--out", tmp_path / "other").exit_code != 0


def test_without_a_command_its_help_is_told():
    assert run().exit_code == 0
    assert "split" in run().stdout
