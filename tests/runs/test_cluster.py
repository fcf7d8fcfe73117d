"""A real cluster on this machine: whatever dies or joins, it comes to the rows of a search nobody touched."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.small_search import command_of, halving, run_search, small_run

from autosf.algebra.structure import from_cells
from autosf.app.cli import run as run_command
from autosf.errors import UserError
from autosf.runs.cluster import Site, how_to_connect, refuse_other_versions
from autosf.runs.cluster_trial import versions
from autosf.runs.run import open_run
from autosf.runs.serving import Outer, Service, serve, serve_asynchronously
from autosf.runs.shared_graph import stored
from autosf.runs.workers import Crew
from autosf.search.asynchronous import asynchronous_free
from autosf.search.record import Trial
from autosf.search.settings import SearchSettings
from autosf.search.verdict import verdict
from run_rows import failures, has_rows, rows, rows_of_untouched, wait_until

EPOCHS = 8  # of the first round
ROOT = Path(__file__).parents[2]
SMALL = ["--trials", "3", "--epochs", "4", "--dimension", "8", "--no-tune"]
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
ray_may_warn = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    """A head without CPUs and two nodes with one each; when they are gone, no process of theirs is left.

    This process stays connected, so that the nodes import torch once for all its searches.
    """
    import ray
    from ray.cluster_utils import Cluster

    # Nice trials would starve on a busy machine.
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    os.environ.update({**quiet, "AUTOSF_TEST_CLUSTER": str(os.getpid())})
    started = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    for _ in range(2):
        started.add_node(**NODE)
    ray.init(**how_to_connect(started.address))
    yield started
    ray.shutdown()
    started.shutdown()
    wait_until(lambda: not trials_at_work())


def trials_at_work() -> list[int]:
    """Processes that run a trial on this process's cluster; another test process may have one, too."""
    mark = f"AUTOSF_TEST_CLUSTER={os.getpid()}".encode()
    found = [path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if is_trial(path)]
    return [int(process.name) for process in found if mark in command_of(process / "environ").split(b"\0")]


def lose_a_node_at_work(cluster) -> bool:
    """Take a node away in the middle of a trial, with all its processes, as when the power fails.

    Trials are held still meanwhile: one that is at work now may be done before its node is dead.
    """
    held = trials_at_work()
    for process in held:
        os.kill(process, signal.SIGSTOP)
    still = set(held) & set(trials_at_work())
    of_nodes = {node: {p for p in still if parent_of(p) == raylet_of(node)} for node in cluster.worker_nodes}
    node, doomed = max(of_nodes.items(), key=lambda pair: len(pair[1]))
    if doomed:
        cluster.remove_node(node, allow_graceful=False)
    for process in held:
        os.kill(process, signal.SIGKILL if process in doomed else signal.SIGCONT)
    return bool(doomed)


def raylet_of(node) -> int:
    (raylet,) = node.all_processes["raylet"]
    return raylet.process.pid


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def is_trial(path: Path) -> bool:
    return b"ray::trial_messages" in command_of(path)


def served(folder: Path, strategy, address: str, **ears):
    run = open_run(folder) if (folder / "run.json").exists() else small_run(folder)
    service = Service(Crew(), keep=True, save_seconds=0.0, site=Site(address))
    return serve(run, strategy, service, Outer(time.monotonic, time.time, **ears))


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict:
    return rows_of_untouched(tmp_path_factory.mktemp("untouched") / "run", EPOCHS)


@pytest.mark.cluster
@ray_may_warn
def test_a_node_dies_and_another_joins_and_no_row_changes(tmp_path, cluster, expected):
    folder, told, lost = tmp_path / "run", [], []

    def progress(now):
        told.append(now)
        is_second_round = now.epoch > EPOCHS  # which goes on from the states of the first
        if is_second_round and not lost and lose_a_node_at_work(cluster):
            lost.append(len(told))
            cluster.add_node(**NODE)

    records, reason = served(folder, halving(seeds=1, epochs=EPOCHS), cluster.address, progress=progress)
    assert reason == "all rounds"
    assert not any(record.failed for record in records)
    assert rows(folder) == expected
    why, *_ = failures(folder)
    assert why.startswith("node ")
    assert why.endswith("was lost")
    assert all(now.epoch > EPOCHS for now in told[lost[0] :]), "no trial loses more than a rung"


@pytest.mark.cluster
@ray_may_warn
def test_a_killed_driver_leaves_no_task_and_resuming_changes_no_row(tmp_path, cluster, expected):
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "benchmarks.small_search", str(folder), "seeds=1", f"epochs={EPOCHS}"]
    driver = subprocess.Popen([*command, f"cluster={cluster.address}"], cwd=ROOT)
    wait_until(lambda: has_rows(folder, 3) and trials_at_work(), 240.0)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_until(lambda: not trials_at_work())
    run_search(folder, workers=1, seeds=1, epochs=EPOCHS, site=Site(cluster.address))
    assert rows(folder) == expected
    assert list((folder / "checkpoints").iterdir()) == []


@pytest.mark.cluster
@ray_may_warn
def test_an_exception_in_a_trial_on_a_cluster_is_told_by_its_message(tmp_path, cluster):
    def strategy():
        (record,) = yield [Trial(from_cells([1, *[0] * 35]), 4, 0)]
        return record.failure

    _, failure = served(tmp_path / "run", strategy(), cluster.address)
    assert "multiple of the structure's 6 parts" in failure
    assert len(failures(tmp_path / "run")) == 2
    assert "Traceback" in (tmp_path / "run" / "logs" / "cluster.log").read_text()


def told_as_json(capfd) -> dict:
    """The answer of a command, without Ray's news of nodes: this process stays connected for all its tests."""
    return json.loads(next(line for line in capfd.readouterr().out.splitlines() if line.startswith("{")))


@pytest.mark.cluster
@ray_may_warn
def test_the_command_finds_the_same_on_a_cluster_as_with_workers(tmp_path, monkeypatch, capfd, cluster):
    monkeypatch.chdir(tmp_path)
    assert run_command(["search", "umls", "--out", "here", *SMALL, "--workers", "1", "--json"]) == 0
    here = told_as_json(capfd)
    options = ["--cluster", cluster.address, "--cpus-per-trial", "0.5"]
    assert run_command(["search", "umls", "--out", "there", *SMALL, *options, "--json"]) == 0
    there = told_as_json(capfd)
    assert there["leaderboard"] == here["leaderboard"]
    assert there["best"] == here["best"]


@pytest.mark.cluster
@ray_may_warn
def test_without_rounds_a_cluster_tries_all_structures_and_holds_the_finals(tmp_path, cluster):
    settings = SearchSettings(epochs=4, grain=2, trials=14, candidates=8, fresh_seeds=1, asynchronous=True)
    run, service = small_run(tmp_path / "run"), Service(Crew(), keep=True, site=Site(cluster.address))
    outer = Outer(time.monotonic, time.time)
    records, reason = serve_asynchronously(run, asynchronous_free(settings), service, outer)
    assert reason == "all 14 structures are tried"
    assert len(records) == len(rows(run.folder))
    assert verdict(records, settings) is not None


@pytest.mark.cluster
@ray_may_warn
def test_trials_see_the_graph_in_the_object_store_without_a_copy(tmp_path, cluster):
    import ray

    kept = stored(small_run(tmp_path / "run").graph_folder)
    there = ray.get(ray.put(kept))
    for array, copy in zip(kept.arrays, there.arrays, strict=True):
        assert not copy.flags.owndata
        assert not copy.flags.writeable
        assert (array == copy).all()


def test_a_node_with_other_versions_is_refused_by_name():
    refuse_other_versions({"address": "10.0.0.7", "versions": versions()})
    with pytest.raises(UserError, match=r"node 10\.0\.0\.7: expected torch .* found 1\.0"):
        refuse_other_versions({"address": "10.0.0.7", "versions": {**versions(), "torch": "1.0"}})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--cluster", "127.0.0.1:1"], "nobody answers there"),
        (["--cluster", "ray://127.0.0.1:1"], "expected the head's address as host:port"),
        (["--cluster", "local", "--gpus-per-trial", "1.5"], "expected a whole number, or a share below 1"),
        (["--cpus-per-trial", "1"], "needs a --cluster"),
        (["--strategy", "paper", "--asynchronous"], 'strategy "paper" works in rounds'),
    ],
)
def test_a_wrong_wish_is_told_in_a_line_before_anything_is_made(options, why, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run_command(["search", "umls", *options]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert why in said
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_a_line_names_it(monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run_command(["search", "umls", "--cluster", "local"]) == 2
    assert 'pip install "autosf[ray]"' in capfd.readouterr().err
