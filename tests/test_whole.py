"""What is written is whole or absent, and an earlier file stays until the new one is there."""

import pytest

from autosf.errors import UserError
from autosf.graph.reading import read_graph
from autosf.graph.writing import write_graph
from autosf.whole import folder_beside, refuse_here, whole_file, whole_folder, write_whole

LONG = "x" * 250  # a name that leaves no room for an ending


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def half_written(place, name):
    with place as beside:
        (beside / name).write_text("half")
        raise ValueError("halfway")


def test_a_file_that_fails_halfway_leaves_the_earlier_one(tmp_path):
    write_whole(tmp_path / "a", "before")
    with pytest.raises(ValueError, match="halfway"):
        half_written(whole_file(tmp_path / "a"), ".")
    assert (tmp_path / "a").read_text() == "before"
    assert names(tmp_path) == ["a"]


def test_two_who_write_the_same_file_at_once_each_leave_it_whole(tmp_path):
    with whole_file(tmp_path / "a") as slow:
        slow.write_text("slow, ")
        write_whole(tmp_path / "a", "fast")
        assert (tmp_path / "a").read_text() == "fast"
        with slow.open("a") as file:
            file.write("second half")
    assert (tmp_path / "a").read_text() == "slow, second half"
    assert names(tmp_path) == ["a"]


def test_a_folder_that_fails_halfway_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="halfway"):
        half_written(whole_folder(tmp_path / "new" / "a"), "file")
    assert names(tmp_path / "new") == []


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_takes_the_place_of_nothing_or_of_an_empty_one(tmp_path, there):
    if there:
        (tmp_path / "a").mkdir()
    with whole_folder(tmp_path / "a") as beside:
        (beside / "file").write_text("whole")
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["file"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_a_long_name_has_room_beside_it(tmp_path):
    write_whole(tmp_path / LONG, "text")
    with whole_folder(tmp_path / LONG[1:]):
        pass
    assert names(tmp_path) == sorted([LONG, LONG[1:]])


@pytest.mark.parametrize(
    "write", [lambda path: write_whole(path, "text"), lambda path: whole_folder(path).__enter__()]
)
def test_a_place_that_cannot_be_written_is_told_by_its_own_name(tmp_path, write):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"file/a: cannot write it \((Not a directory|File exists)\)"):
        write(tmp_path / "file" / "a")


def test_no_folder_is_made_for_a_text_but_for_what_a_user_names(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        write_whole(tmp_path / "gone" / "a", "text")
    with whole_file(tmp_path / "new" / "a") as beside:
        beside.write_text("text")
    assert names(tmp_path) == ["new"]


@pytest.mark.parametrize("folder", [".", "..", "../here"])
def test_the_folder_we_are_in_is_never_replaced(tmp_path, monkeypatch, folder):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with (
        pytest.raises(UserError, match="is the folder you are in, or above it"),
        folder_beside(here / folder),
    ):
        pass
    with pytest.raises(UserError, match="is the folder you are in, or above it"):
        write_graph(read_graph([("a", "r", "b")]), ".")
    refuse_here(here / "new")
    assert names(tmp_path) == ["here"]
    assert names(here) == []
