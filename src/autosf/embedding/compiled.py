"""The multi-class loss's passes over its scores, compiled for this machine when they are first needed.

`softmax.c` beside this file takes 60 to 85 % of the time that torch takes for the same one after the other
(docs/notes/014). It needs a C compiler, which most machines that train have; without one, on other processors, or
where `AUTOSF_KERNEL=torch` asks for it, training goes on with torch's. The library is kept in the user's cache
under a name made of all that decides it, so that it is compiled once; a library that others could have written is
not loaded. The environment is read here, below the app, as a library belongs to the process, like its threads.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from autosf.graph.registry import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

SOURCE = Path(__file__).with_name("softmax.c")
FLAGS = ("-O3", "-fopenmp", "-fPIC", "-shared")
BY_PROCESSOR = {"AVX512": ("-mavx512f", "-mfma"), "AVX2": ("-mavx2", "-mfma")}  # as torch calls them
COMPILERS = ("cc", "gcc", "clang")
COMPILING_SECONDS = 60
STREAMED = 2**22  # bytes of powers that leave the caches before they are used again


class Uncompiled(Exception):  # noqa: N818 - it says what is the case
    """Why there is no library here."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The library, and the sizes it was compiled with."""

    library: ctypes.CDLL
    panel: int  # queries that are scored at a time
    vector: int  # of which the dimension has to be a multiple

    @classmethod
    def of(cls, library: ctypes.CDLL) -> Kernel:
        for name, signature in SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes = [KINDS[letter] for letter in signature]
            function.restype = ctypes.c_long if name == "scratch_size" else None
        return cls(library, library.panel_size(), library.vector_size())

    def suits(self, entities: Tensor, block: int) -> bool:
        """Whether so many queries at a time fill it, and the numbers are what it was written for."""
        plain = entities.device.type == "cpu" and entities.dtype == torch.float32 and entities.is_contiguous()
        return plain and block >= self.panel and entities.shape[1] % self.vector == 0

    def room(self, entities: int, block: int) -> int:
        """Powers of a block of queries, as numbers."""
        return entities * -(-block // self.panel) * self.panel

    def raised(self, queries: Tensor, entities: Tensor, powers: Tensor) -> tuple[Tensor, Tensor]:
        """Row sums [n] of P = exp(queries entities^T), and E^T P [d, n]; P itself stays in `powers`."""
        (n, d), threads = queries.shape, torch.get_num_threads()
        sums, by_query = torch.empty(n), torch.empty(d, n)
        scratch = torch.empty(self.library.scratch_size(threads, d, n))
        self.library.forward(
            *(threads, entities.data_ptr(), len(entities), d),
            *(queries.data_ptr(), *queries.stride(), n),
            *(powers.data_ptr(), 4 * n * len(entities) > STREAMED),
            *(sums.data_ptr(), by_query.data_ptr(), scratch.data_ptr()),
        )
        return sums, by_query

    def spread(self, queries: Tensor, weights: Tensor, powers: Tensor, out: Tensor, *, add: bool) -> None:
        """out [N, d] = P (weights * queries), with the powers that `raised` kept; added to what is there if so."""
        (n, d), threads = queries.shape, torch.get_num_threads()
        scratch = torch.empty(self.library.scratch_size(threads, d, n))
        self.library.backward(
            *(threads, powers.data_ptr(), len(out), d),
            *(queries.data_ptr(), *queries.stride(), n),
            *(weights.data_ptr(), out.data_ptr(), add, scratch.data_ptr()),
        )


KINDS = {"n": ctypes.c_long, "p": ctypes.c_void_p, "f": ctypes.c_int}  # number, pointer, flag
SIGNATURES = {"scratch_size": "nnn", "forward": "npnnpnnnpfppp", "backward": "npnnpnnnppfp"}


@cache
def kernel() -> Kernel | None:
    """The compiled passes, or None where torch's have to do."""
    try:
        return built(os.environ)
    except Uncompiled:
        return None


def built(environ: Mapping[str, str]) -> Kernel:
    """The library of this machine, compiled now if it has not been yet."""
    if environ.get("AUTOSF_KERNEL") == "torch":
        raise Uncompiled("AUTOSF_KERNEL=torch asks for torch's products")
    flags = BY_PROCESSOR.get(torch.backends.cpu.get_cpu_capability())
    if platform.system() != "Linux" or platform.machine() != "x86_64" or flags is None:
        raise Uncompiled("written for Linux on x86-64 with AVX2 or AVX-512")
    text = SOURCE.read_bytes()
    digest = hashlib.sha256(b"\0".join([text, *(flag.encode() for flag in (*FLAGS, *flags))])).hexdigest()
    path = cache_folder(environ) / "kernels" / f"softmax-{digest[:24]}.so"
    try:
        if not path.exists():
            compile_into(path, (*FLAGS, *flags))
        refuse_others(path)
        return Kernel.of(ctypes.CDLL(str(path)))
    except (OSError, subprocess.SubprocessError) as error:
        raise Uncompiled(f"{path.name}: {error}") from error


def compile_into(path: Path, flags: tuple[str, ...]) -> None:
    """Compiled beside its place, then renamed, so that several processes may do it at once."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise Uncompiled(f"found no C compiler ({', '.join(COMPILERS)})")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        command = [compiler, *flags, "-o", str(made), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILING_SECONDS)  # noqa: S603 - a compiler
        if done.returncode:
            raise Uncompiled(f"{compiler}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        made.chmod(0o700)
        made.replace(path)


def refuse_others(path: Path) -> None:
    """A library is code: it has to be the user's own, and nobody else's to change."""
    for place in (path, path.parent):
        found = place.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise Uncompiled(f"{place}: others may write to it")
