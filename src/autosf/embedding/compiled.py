"""A step of the multi-class loss, compiled for this machine when it is first needed.

`step.c` and `softmax.c` beside this file take a quarter to two thirds of the time that torch takes for the same,
call after call (docs/notes/014). They need a C compiler, which most machines that train have; without one, on
other processors, or where `AUTOSF_KERNEL=torch` asks for it, training goes on with torch's. The library is kept in
the user's cache under a name made of all that decides it, so that it is compiled once; a library that others could
have written is not loaded. The environment is read here, below the app, as a library belongs to the process, like
its threads.
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

from autosf.embedding.hands import Hands
from autosf.graph.registry import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

FOLDER = Path(__file__).parent
SOURCES = ("step.c", "softmax.c", "softmax.h")
FLAGS = (
    *("-O3", "-fno-math-errno", "-fopenmp", "-fPIC", "-shared"),
    "-Wl,-Bsymbolic-functions",  # its own `softmax`, whatever else the process has loaded
)
BY_PROCESSOR = {"AVX512": ("-mavx512f", "-mfma"), "AVX2": ("-mavx2", "-mfma")}  # as torch calls them
COMPILERS = ("cc", "gcc", "clang")
COMPILING_SECONDS = 60
DIGEST = hashlib.sha256().digest_size
ALONE = 2**15  # numbers for which threads would wait longer than they work


class Uncompiled(Exception):  # noqa: N818 - it says what is the case
    """Why there is no library here."""


class Torn(Exception):  # noqa: N818 - it says what is the case
    """A library that is not as it was written: cut off by a full disk or a power cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The library, and the sizes it was compiled with."""

    library: ctypes.CDLL
    panel: int  # queries that are scored at a time
    vector: int  # of which the dimension has to be a multiple
    hands: Hands

    @classmethod
    def of(cls, library: ctypes.CDLL) -> Kernel:
        number, pointer = ctypes.c_long, ctypes.c_void_p
        library.step.argtypes = [pointer]
        library.adagrad.argtypes = [number, pointer, pointer, pointer, number, ctypes.c_double]
        library.adagrad_rows.argtypes = [
            *(number, pointer, pointer, pointer, number, pointer, number, ctypes.c_double)
        ]
        for name, numbers in (("step_room", 4), ("powers_room", 2)):
            function = getattr(library, name)
            function.argtypes, function.restype = [number] * numbers, number
        library.limit_hands.argtypes, library.limit_hands.restype = [number], None
        return cls(library, library.panel_size(), library.vector_size(), Hands(library.limit_hands))

    def suits(self, entities: Tensor, block: int) -> bool:
        """Whether `block` queries at a time fill it, and the numbers are what it was written for."""
        return plain(entities) and block >= self.panel and entities.shape[1] % self.vector == 0

    def adagrad(self, matrix: Tensor, sums: Tensor, gradient: Tensor, rate: float) -> None:
        """A step of Adagrad, in place."""
        threads = torch.get_num_threads() if matrix.numel() > ALONE else 1
        pointers = matrix.data_ptr(), sums.data_ptr(), gradient.data_ptr()
        self.library.adagrad(threads, *pointers, matrix.numel(), rate)

    def adagrad_rows(
        self, matrix: Tensor, sums: Tensor, rows: Tensor, gradients: Tensor, rate: float
    ) -> None:
        """The same on some rows, none of them twice."""
        count, width = gradients.shape
        threads = torch.get_num_threads() if gradients.numel() > ALONE else 1
        self.library.adagrad_rows(
            threads,
            *(matrix.data_ptr(), sums.data_ptr(), rows.data_ptr(), count),
            *(gradients.data_ptr(), width, rate),
        )

    def powers_room(self, candidates: int, block: int) -> int:
        """Numbers for the powers of a block of queries."""
        return int(self.library.powers_room(candidates, block))

    def step(self, step: ctypes.Structure, threads: int) -> bool:
        """Gradients of a batch, as step.c tells; False where a sum of powers left the floats."""
        return self.hands.work(threads, lambda: bool(self.library.step(ctypes.addressof(step))))

    def step_room(self, threads: int, dimension: int, queries: int, block: int) -> int:
        """Numbers that a step needs beside its powers."""
        return int(self.library.step_room(threads, dimension, queries, block))


def plain(tensor: Tensor) -> bool:
    """Whether it is what the library was written for: float32 on this machine, row by row."""
    return tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous()


@cache
def kernel() -> Kernel | None:
    """The compiled step, or None where torch's has to do."""
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
    try:
        return compiled_here(cache_folder(environ) / "kernels", (*FLAGS, *flags))
    except (OSError, subprocess.SubprocessError, AttributeError) as error:
        raise Uncompiled(str(error)) from error


def compiled_here(folder: Path, flags: tuple[str, ...]) -> Kernel:
    """The library in the folder, under a name made of all that decides it; made again if it is not whole.

    One that is whole and does not load is left: it would not from a disk that nothing may be executed from.
    """
    texts = [(FOLDER / name).read_bytes() for name in SOURCES]
    words = (*flags, *platform.libc_ver())
    digest = hashlib.sha256(b"\0".join([*texts, *(word.encode() for word in words)])).hexdigest()
    path = folder / f"step-{digest[:24]}.so"
    if not path.exists():
        compile_into(path, flags)
    try:
        return loaded(path)
    except Torn:
        compile_into(path, flags)
        return loaded(path)


def compile_into(path: Path, flags: tuple[str, ...]) -> None:
    """Compiled beside its place, then renamed, so that several processes may do it at once."""
    compilers = list(filter(None, map(shutil.which, COMPILERS)))
    if not compilers:
        raise Uncompiled(f"found no C compiler ({', '.join(COMPILERS)})")
    for place in (*reversed(path.parent.parents), path.parent):  # with all parents of one's own, too
        place.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        reasons = [complaint(compiler, flags, made) for compiler in compilers if not made.exists()]
        if not made.exists():
            raise Uncompiled(reasons[0])
        with made.open("ab") as file:  # what stands after a library is no part of it
            file.write(hashlib.sha256(made.read_bytes()).digest())
            file.flush()
            os.fsync(file.fileno())
        made.chmod(0o700)
        made.replace(path)


def complaint(compiler: str, flags: tuple[str, ...], made: Path) -> str:
    """Have a compiler make the library; what it says if it does not."""
    sources = [str(FOLDER / name) for name in SOURCES if name.endswith(".c")]
    command = [compiler, *flags, "-o", str(made), *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, timeout=COMPILING_SECONDS)  # noqa: S603 - a compiler
    if done.returncode:
        made.unlink(missing_ok=True)
    said = done.stderr.decode(errors="replace").strip().splitlines()  # in any language
    return f"{compiler}: {(said or ['failed'])[-1]}"


def loaded(path: Path) -> Kernel:
    """The library from a folder that is opened once: the one looked at, whoever renames folders meanwhile."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        refuse_others(path.parent, os.fstat(folder))
        refuse_others(path, os.stat(path.name, dir_fd=folder, follow_symlinks=False))
        refuse_torn(Path(f"/proc/self/fd/{folder}/{path.name}"))
        return Kernel.of(ctypes.CDLL(f"/proc/self/fd/{folder}/{path.name}"))
    finally:
        os.close(folder)


def refuse_torn(path: Path) -> None:
    """To load a library whose end is missing kills the process: its digest has to stand at its end."""
    content = path.read_bytes()
    if hashlib.sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise Torn(f"{path.name}: its bytes have changed")


def refuse_others(place: Path, found: os.stat_result) -> None:
    """A library is code: it has to be the user's own, and nobody else's to change."""
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Uncompiled(f"{place}: others may write to it")
