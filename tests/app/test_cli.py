"""The command line's contract: keys, exit codes, one line for a mistake."""

import inspect
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import autosf
from autosf.app.cli import autosf as command_group
from autosf.app.cli import run
from autosf.app.command_table import JOBS
from autosf.app.command_table import listed as listed_commands
from thorough import THOROUGH


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    found, context = [], click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
        else:
            found.append(((*path, name), command))
    return found


ALL = commands(command_group)


def title(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else ""


def called(capfd, *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    out, err = capfd.readouterr()
    return code, out, err


def test_version(capfd):
    assert called(capfd, "--version") == (0, f"autosf {autosf.__version__}\n", "")


def test_help_fits_a_screen_and_is_the_default(capfd):
    code, out, _ = called(capfd, "--help")
    assert code == 0
    assert len(out.splitlines()) <= 30
    assert max(map(len, out.splitlines())) <= 80
    assert "..." not in out.partition("\n")[2], "no sentence is cut"
    assert called(capfd)[1] == out


def test_help_names_every_command_below_its_job(capfd):
    _, out, _ = called(capfd, "--help")
    listed = [
        line[14:].split()[0] for line in out.splitlines() if line[14:15].isalpha() and line[13:14] == " "
    ]
    assert listed == listed_commands()
    jobs = [line.split()[0] for line in out.splitlines() if line[2:].split()[:1] and line.split()[0] in JOBS]
    assert jobs == list(JOBS)


def test_help_loads_nothing_heavy():
    program = "from autosf.app.cli import run; run(['--help']); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "click" in loaded
    assert not {"torch", "numpy", "polars", "rich", "optuna", "sklearn", "scipy", "plotly"} & set(loaded)


def test_a_command_whose_module_is_not_there_is_not_listed(capfd, monkeypatch):
    monkeypatch.setitem(JOBS, "Start", {**JOBS["Start"], "later": "autosf.app.commands.later:later"})
    assert "later" not in listed_commands()
    assert "later" not in called(capfd, "--help")[1]
    assert 'unknown command "later"' in called(capfd, "later")[2]


@pytest.mark.parametrize(
    ("path", "command"), ALL, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_every_command_has_a_sentence_an_example_and_json(path, command):
    sentence = command.get_short_help_str(200)
    assert sentence.endswith(".")
    assert not sentence.endswith("...")
    assert command.epilog.startswith(f"Example: autosf {' '.join(path)}")
    assert any(parameter.name == "as_json" for parameter in command.params)


@pytest.mark.parametrize("path", [("zoo",), ("show",), ("space",)], ids=" ".join)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_examples_run(path, as_json, capfd):
    command = dict(ALL)[path]
    example = shlex.split(command.epilog.removeprefix("Example: autosf "))
    code, out, err = called(capfd, *example, *(["--json"] if as_json else []))
    assert (code, err) == (0, "")
    assert not as_json or isinstance(json.loads(out), dict)


def test_show_has_the_keys_programs_rely_on(capfd):
    code, out, _ = called(capfd, "show", "complex", "--json")
    result = json.loads(out)
    keys = "rows terms blocks canonical srf symmetric skew_symmetric summands c2 c2_reasons names reachable"
    assert code == 0
    assert set(keys.split()) <= set(result)
    assert result["rows"] == [[1, 0, 3, 0], [0, 2, 0, 4], [-3, 0, 1, 0], [0, -4, 0, 2]]
    assert result["terms"][1] == {"sign": 1, "head": 1, "relation": 3, "tail": 3}
    assert result["names"] == ["complex", "hole"]
    assert result["symmetric"] == [1, 2, 0, 0]
    assert result["reachable"] is False
    assert result["c2"] is True


def test_show_recognises_a_zoo_member_in_disguise(capfd):
    _, out, _ = called(capfd, "show", "[[2,0,0,-1],[0,4,3,0],[0,-3,4,0],[1,0,0,2]]")
    assert "complex in disguise, by the paper's invariances" in out


def test_show_reads_a_published_list(capfd):
    _, out, _ = called(capfd, "show", "--published", "2,1,3,0", "--json")
    assert json.loads(out)["names"] == ["autosf-fb15k237"]


def test_show_writes_a_drawing_whole_or_not_at_all(capfd, tmp_path):
    target = tmp_path / "g.svg"
    assert called(capfd, "show", "simple", "--svg", str(target))[0] == 0
    assert target.read_text(encoding="utf-8").startswith("<svg")
    assert [path.name for path in tmp_path.iterdir()] == ["g.svg"]
    code, _, err = called(capfd, "show", "simple", "--svg", str(tmp_path / "nowhere" / "g.svg"))
    assert code == 2
    assert err.count("\n") == 1


def test_space_has_the_keys_programs_rely_on(capfd):
    _, out, _ = called(capfd, "space", "6", "--json")
    assert {"blocks": 6, "classes": 24756, "c1_classes": 3560}.items() <= json.loads(out).items()
    _, out, _ = called(capfd, "space", "6", "--group", "extended", "--reachable", "--json")
    assert json.loads(out)["classes"] == 1400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shw"], 'unknown command "shw"; did you mean "show"? (see: autosf --help)'),
        (["stats", "umls"], 'unknown command "stats"; did you mean "data stats"? (see: autosf --help)'),
        (["zzz"], 'unknown command "zzz" (see: autosf --help)'),
        (
            ["search", "umls", "--bugdet", "1m"],
            'unknown option "--bugdet"; did you mean "--budget"? (see: autosf search --help)',
        ),
        (["show"], "Missing argument 'STRUCTURE'. (see: autosf show --help)"),
        (["show", "--jsn", "simple"], "--jsn"),
        (["show", "compex"], 'unknown structure "compex"; did you mean "complex"?'),
        (["show", "2,1,3,0"], "--published"),
        (["show", "--published", "2,x"], 'expected integers and commas, found "2,x"'),
        (["show", "[[1,0],[0,5]]"], 'row 2, column 2: expected an integer from -2 to 2, found "5"'),
        (["space", "six"], "'six' is not a valid integer"),
        (["space", "99"], "blocks: expected a number from 1 to 16, found 99"),
        (["space", "6", "--group", "big"], "'big' is not one of 'paper', 'extended'"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments, message, capfd):
    code, out, err = called(capfd, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("autosf: ")
    assert message in err
    assert err.count("\n") == 1


def test_an_interruption_is_exit_code_130(monkeypatch, capfd):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("autosf.app.cli.autosf.main", interrupted)
    assert called(capfd, "demo") == (130, "", "autosf: interrupted\n")


def in_a_shell(line: str) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False)


def test_a_reader_that_leaves_is_no_error():
    done = in_a_shell(f"{shlex.quote(sys.executable)} -m autosf show quate | true")
    assert (done.returncode, done.stderr) == (0, "")


def test_pipes_carry_no_colours():
    done = in_a_shell(f"{shlex.quote(sys.executable)} -m autosf zoo")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


cells = st.one_of(
    st.integers(-5, 5), st.integers(), st.floats(), st.booleans(), st.none(), st.text(max_size=5)
)
matrices = st.lists(st.lists(cells, max_size=6), max_size=6)
square = st.sampled_from([2, 4, 6]).flatmap(
    lambda k: st.lists(st.lists(st.integers(-k, k), min_size=k, max_size=k), min_size=k, max_size=k)
)
anything = st.recursive(
    cells, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner)
)
numbers = st.lists(st.integers(-3, 5), max_size=16).map(lambda values: ",".join(map(str, values)))
as_json = st.one_of(anything, matrices, square).map(json.dumps)
texts = st.one_of(st.text(), as_json, numbers, numbers.map("[{}]".format))


@pytest.mark.slow
@pytest.mark.parametrize("published", [False, True])
def test_show_survives_thousands_of_random_texts(published):
    """Exit code 0 or 2 and never a traceback: any other exception passes through `run` and fails here."""

    @settings(max_examples=5_000 if THOROUGH else 1_000, deadline=None, database=None)
    @given(texts)
    def shown(text):
        options = ["--published"] if published else []
        assert run(["show", "--json", *options, "--", text]) in (0, 2)

    shown()


def autosf_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "autosf", *arguments]
    return subprocess.run(command, capture_output=True, env={**os.environ, **environment}, check=False)


def test_no_letters_of_a_label_stop_a_command():
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    done = autosf_process("show", "Zürich 人", **ascii_only)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"unknown structure" in done.stderr


def test_a_full_disk_is_one_line(tmp_path):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "autosf", "show", "complex", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"No space left on device" in done.stderr
    done = autosf_process("data", "split", "umls", "--out", str(tmp_path / ("x" * 300)))
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"File name too long" in done.stderr


@pytest.mark.parametrize("command", ["data split {file}", "data synthetic", "tune {file}"])
def test_a_folder_that_cannot_be_made_is_one_line(command, tmp_path, capfd):
    file = tmp_path / "graph.tsv"
    file.write_text("".join(f"e{i}\tr\te{i + 1}\n" for i in range(40)))
    assert run([*command.format(file=file).split(), "--out", str(file / "sub")]) == 2
    told = capfd.readouterr().err.splitlines()[-1]
    assert "cannot be made" in told or "cannot write it" in told


def test_sigterm_ends_a_search_as_ctrl_c_does(tmp_path):
    words = ["search", "umls", "--set", "epochs=2000", "--workers", "1", "--out", "r"]
    command = [sys.executable, "-m", "autosf", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "r" / "live.json").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "autosf resume" in told


def test_the_front_door_of_searching_tells_what_it_takes():
    assert {"graph", "budget", "trials"} <= set(inspect.signature(autosf.search).parameters)
    assert "budget" in autosf.search.__doc__
