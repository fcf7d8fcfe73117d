"""Graphs by name: the registry itself, and where a name is looked up."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from autosf.algebra.zoo import plain
from autosf.errors import UserError
from autosf.graph.knowledge_graph import SPLITS
from autosf.graph.registry import (
    at_hand,
    cache_folder,
    known_graph,
    known_graphs,
    locate,
    name_of,
    packaged_folders,
    search_path,
)

NAMES = [
    "WN18",
    "WN18RR",
    "FB15k",
    "FB15k-237",
    "YAGO3-10",
    "CoDEx-S",
    "CoDEx-M",
    "CoDEx-L",
    "NELL-995",
    "Kinships",
    "UMLS",
    "Nations",
]


def make(folder: Path, name: str, file: str = "train.txt") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / file).write_text("a\tb\tc\n")
    return folder / name


def test_all_well_known_graphs_are_there():
    assert [graph.name for graph in known_graphs()] == NAMES


@pytest.mark.parametrize("graph", known_graphs(), ids=lambda graph: graph.name)
def test_every_entry_can_be_had_and_checked(graph):
    assert graph.licence
    assert graph.source
    assert min(graph.entities, graph.relations, *graph.sizes.values()) > 0
    assert graph.mirrors
    for mirror in graph.mirrors:
        addresses = [mirror.archive] if mirror.archive else list(mirror.files.values())
        assert all(address.startswith("https://") for address in addresses)
        assert set(mirror.files) == set(SPLITS)
    if graph.algorithm != "sha256":
        assert graph.unverified, "where no SHA-256 is known, the entry says so"
    if graph.algorithm:
        length = hashlib.new(graph.algorithm, usedforsecurity=False).digest_size * 2
        assert {split: len(value) for split, value in graph.hashes.items()} == dict.fromkeys(SPLITS, length)


def test_no_two_graphs_answer_to_one_name():
    names = [plain(name) for graph in known_graphs() for name in (graph.name, *graph.other_names)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("written", ["fb15k-237", "FB15K_237", "fb15k237", "FB15k 237", "Fb15K--237"])
def test_case_and_punctuation_do_not_matter(written):
    assert known_graph(written).name == name_of(written) == "FB15k-237"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("fb15k-273", '"fb15k-237"'),
        ("WN18R", '"wn18rr"'),
        ("kinshps", '"kinships"'),
        ("something else", "see: autosf data list"),
        ("", "see: autosf data list"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(written, told):
    with pytest.raises(UserError, match=told):
        known_graph(written)
    with pytest.raises(UserError, match=told):
        locate(written, search_path=())


def test_the_first_folder_of_the_path_wins(tmp_path: Path):
    second = make(tmp_path / "two", "fb15k_237")
    assert locate("FB15k-237", search_path=[tmp_path / "one", tmp_path / "two"]) == second
    first = make(tmp_path / "one", "FB15K237", "train.tsv.gz")
    assert locate("FB15k-237", search_path=[tmp_path / "one", tmp_path / "two"]) == first


def test_other_names_of_a_graph_find_it(tmp_path: Path):
    folder = make(tmp_path, "kinship")
    assert locate("Kinships", search_path=[tmp_path]) == folder


def test_a_graph_of_the_users_own_is_found_by_its_folder(tmp_path: Path):
    folder = make(tmp_path, "My-Graph 2")
    assert locate("mygraph2", search_path=[tmp_path]) == folder
    with pytest.raises(UserError, match=r'did you mean "my-graph 2"'):
        locate("my-graph 3", search_path=[tmp_path])


def test_a_folder_without_a_training_split_is_none(tmp_path: Path):
    make(tmp_path, "WN18", "readme.txt")
    assert at_hand("WN18", search_path=[tmp_path]) is None
    with pytest.raises(UserError, match="autosf data get WN18"):
        locate("wn-18", search_path=[tmp_path])


def test_a_search_path_of_missing_folders_and_files_is_harmless(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert at_hand("WN18", search_path=[tmp_path / "nowhere", tmp_path / "file"]) is None


def test_the_environment_says_where_to_look():
    path = search_path({"AUTOSF_DATA": "/data", "XDG_CACHE_HOME": "/cache", "HOME": "/home/me"})
    assert path[:2] == (Path("/data"), Path("/cache/autosf"))
    assert search_path({"HOME": "/home/me"})[0] == Path("/home/me/.cache/autosf")
    assert search_path({"HOME": "/home/me", "AUTOSF_DATA": ""})[0] == Path("/home/me/.cache/autosf")


def test_a_relative_cache_folder_is_ignored():
    assert cache_folder({"XDG_CACHE_HOME": "here", "HOME": "/home/me"}) == Path("/home/me/.cache/autosf")


packaged = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")


@packaged
@pytest.mark.parametrize("name", ["UMLS", "Kinships", "Nations"])
def test_the_packaged_graphs_are_the_published_ones(name):
    folder = locate(name, search_path=packaged_folders())
    for split, published in known_graph(name).hashes.items():
        assert hashlib.sha256((folder / f"{split}.txt").read_bytes()).hexdigest() == published


@packaged
def test_the_packaged_graphs_are_found_without_running_pykeen():
    code = (
        "import sys; from autosf.graph.registry import locate, search_path;"
        "print(locate('umls', search_path=search_path({'HOME': '/nowhere'})));"
        "assert not any(name.split('.')[0] in ('pykeen', 'torch') for name in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert Path(ran.stdout.strip()).name == "umls"
