"""Run by `make package` with the Python of an environment that holds the wheel and no extra: is that enough?

python benchmarks/minimal_install.py
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import autosf

COMMAND = str(Path(sys.executable).with_name("autosf"))
HELP_SECONDS = 0.3
EXTRAS = {"web": "starlette", "ray": "ray", "pykeen": "pykeen", "rdf": "pyoxigraph", "mlflow": "mlflow"}
WITHOUT = {  # the extra that each of these says it lacks
    "rdf": "data stats facts.nt",
    "web": "serve run",
    "ray": "search triples.tsv --out other --cluster local",
    "mlflow": "train triples.tsv --epochs 1 --dimension 8 --track mlflow:sqlite:///x.db",
    "tensorboard": "train triples.tsv --epochs 1 --dimension 8 --track tensorboard:boards",
    "pykeen": "data stats pykeen:nations",
}


def called(words: str, expected: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([COMMAND, *words.split()], capture_output=True, text=True)
    assert done.returncode == expected, (
        f"autosf {words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    )
    return done


def main() -> None:
    """Each line that is printed is a claim that held."""
    there = [module for module in EXTRAS.values() if importlib.util.find_spec(module)]
    assert not there, f"not a minimal environment: {there}"
    fastest = min(timed("--help") for _ in range(5))
    assert fastest < HELP_SECONDS, f"autosf --help took {fastest:.2f} s"
    print(f"autosf --help takes {fastest:.2f} s")
    print(f"{imported()} modules import")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ |= {"XDG_CACHE_HOME": folder}
        os.environ.pop("AUTOSF_DATA", None)
        print(called("demo --budget 60s --out run").stdout)
        called("doctor")
        called("predict run --near ben_brook --top 3")
        called("evaluate run")
        for form in ("npz", "safetensors", "word2vec", "parquet"):
            called(f"export run --to {form} vectors.{form}")
        print("the demo runs; its model answers, is measured and exported")
        lacking()


def timed(words: str) -> float:
    """Seconds of the processor, which on an idle machine are those of the clock."""
    before = os.times()
    called(words)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def imported() -> int:
    """How many modules of the package import without any extra."""
    count = 0
    for module in pkgutil.walk_packages(autosf.__path__, "autosf."):
        if module.name == "autosf.__main__":
            continue
        try:
            importlib.import_module(module.name)
            count += 1
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS.values():
                raise
    return count


def lacking() -> None:
    """Whatever needs an extra says so in its last line."""
    people = [f"p{number}" for number in range(12)]
    Path("facts.nt").write_text("<http://a> <http://b> <http://c> .\n")
    Path("triples.tsv").write_text("".join(f"{a}\tknows\t{b}\n" for a in people for b in people if a < b))
    for extra, words in WITHOUT.items():
        told = called(words, expected=2).stderr.splitlines()[-1]
        assert f"autosf[{extra}]" in told, told
    print(f"a missing extra is named: {', '.join(WITHOUT)}")


if __name__ == "__main__":
    main()
