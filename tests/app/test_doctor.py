"""`autosf doctor` tells what is there, and what to do about what is amiss."""

import json

import pytest

from autosf.app import doctor
from autosf.app.cli import run
from autosf.app.sizes import size_in_words


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(doctor, "SPEED_SECONDS", 0.01)


def test_the_keys_programs_rely_on(quick, capfd):
    assert run(["doctor", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    checks = {finding["check"]: finding for finding in told["checks"]}
    assert set(checks) >= {
        "autosf",
        "packages",
        "cores",
        "memory",
        "disk",
        "device",
        "threads",
        "kernel",
        "speed",
        "training",
    }
    assert {f"extra {name}" for name in doctor.EXTRAS} <= set(checks)
    assert told["healthy"] == all(finding["status"] != "warning" for finding in told["checks"])
    assert all(finding["advice"] for finding in told["checks"] if finding["status"] != "ok")
    assert checks["training"]["status"] == "ok"


def test_people_read_a_line_each(quick, capfd):
    assert run(["doctor"]) == 0
    out = capfd.readouterr().out
    assert "ok" in out
    assert "billion operations a second" in out


def test_a_missing_extra_comes_with_its_command(monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", {"moon": ("flying", "no_such_module")})
    missing = list(doctor.installation())[-1]
    assert missing == doctor.Finding(
        "extra moon", "optional", "not installed; for flying", 'pip install "autosf[moon]"'
    )


def test_a_kernel_that_is_not_compiled_is_told_with_the_reason(monkeypatch):
    monkeypatch.setenv("AUTOSF_KERNEL", "torch")
    (found,) = doctor.kernel()
    assert found.status == "optional"
    assert "AUTOSF_KERNEL=torch" in found.found


def test_a_data_folder_that_is_not_there_is_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("AUTOSF_DATA", str(tmp_path / "gone"))
    assert next(doctor.data()).status == "warning"
    (tmp_path / "gone" / "mine").mkdir(parents=True)
    (tmp_path / "gone" / "mine" / "train.tsv").touch()
    assert next(doctor.data()).found.startswith("mine")


def test_a_check_that_fails_is_a_warning_and_the_others_go_on(monkeypatch):
    def broken():
        raise ImportError("libfoo.so: not found")
        yield

    monkeypatch.setattr(doctor, "CHECKS", (broken, doctor.disk))
    first, second = doctor.findings()
    assert (first.check, first.status, first.found) == (
        "broken",
        "warning",
        "ImportError: libfoo.so: not found",
    )
    assert second.check == "disk"


def test_a_containers_limits_count(tmp_path):
    assert doctor.available_memory(tmp_path) is None
    assert doctor.processor_share(tmp_path) is None
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable:  8000000 kB\n")
    assert doctor.available_memory(tmp_path) == 8_000_000 * 1024
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("1000\n")
    (group / "cpu.max").write_text("max 100000\n")
    assert doctor.available_memory(tmp_path) == 8_000_000 * 1024
    assert doctor.processor_share(tmp_path) is None
    (group / "memory.max").write_text("3000\n")
    (group / "cpu.max").write_text("150000 100000\n")
    assert doctor.available_memory(tmp_path) == 2000
    assert doctor.processor_share(tmp_path) == 1.5


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (9_940_000, "9.9 MB"), (9_960_000, "10 MB"),
     (999_600, "1.0 MB"), (2.5e9, "2.5 GB"), (3e15, "3000 TB")],
)  # fmt: skip
def test_sizes_have_two_or_three_digits(size, words):
    assert size_in_words(size) == words
