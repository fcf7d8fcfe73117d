"""The compiled step against torch's own, for every processor this machine can play, and its refusals."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autosf.algebra.zoo import named
from autosf.embedding import compiled
from autosf.embedding.compiled import BY_PROCESSOR, Kernel, Torn, Uncompiled, built, refuse_torn
from autosf.embedding.compiled_steps import Step, compiled_gradients
from autosf.embedding.multiclass import StandIns, Targets, Workspace, multiclass_plainly
from autosf.embedding.queries import Batch
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.steps import ask, dropped, multiclass_gradients, torch_gradients
from strategies import structures

COMPLEX = named("complex").structure
PLAYABLE = {"AVX512": ("AVX512", "AVX2"), "AVX2": ("AVX2",)}.get(torch.backends.cpu.get_cpu_capability(), ())
FOLDERS: dict[str, Path] = {}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    FOLDERS.update({name: tmp_path_factory.mktemp(name) for name in BY_PROCESSOR})


def kernel_for(processor: str) -> Kernel:
    if processor not in PLAYABLE:
        pytest.skip(f"this processor has no {processor}")
    environ = {"XDG_CACHE_HOME": str(FOLDERS[processor])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: processor)
        try:
            return built(environ)
        except Uncompiled as reason:
            pytest.skip(str(reason))


def rows(n: int, d: int, seed: int) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)) * 0.3


def batch(
    n: int, entities: int, relations: int, tail_queries: int, seed: int = 3, *, drawn: bool = False
) -> Batch:
    """Queries with one to four answers each, against all entities or some that stand for more."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, n)

    def some(below: int, size: int) -> torch.Tensor:
        return torch.from_numpy(rng.integers(0, below, size))

    sources = some(entities, n)
    targets = Targets(
        rows=torch.from_numpy(np.repeat(np.arange(n), counts)),
        starts=torch.from_numpy(np.cumsum(counts) - counts),
        answers=torch.from_numpy(
            np.concatenate([rng.choice(entities, count, replace=False) for count in counts])
        ),
        counts=torch.from_numpy(counts).float(),
        drawn=StandIns(torch.from_numpy(rng.uniform(1, 30, entities)).float(), sources) if drawn else None,
    )
    return Batch(sources, some(relations, n), tail_queries, targets, int(counts.sum()))


def work_of(kernel: Kernel, entities: torch.Tensor, block: int) -> Workspace:
    powers = torch.empty(kernel.powers_room(len(entities), block))
    return Workspace(powers, torch.empty_like(entities), block, kernel)


@contextmanager
def with_threads(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("processor", BY_PROCESSOR)
@settings(max_examples=40, deadline=None)
@given(
    structure=structures(),
    entities=st.integers(12, 700),
    vectors=st.integers(1, 9),
    n=st.integers(1, 200),
    block=st.sampled_from([64, 128, 200]),
    tails=st.floats(0, 1),
    regulariser=st.sampled_from(["n3", "n3-moduli", "l2", "dura", "none"]),
    dropout=st.sampled_from([0, 0.2]),
    relation_prediction=st.sampled_from([0, 0.7]),
    drawn=st.booleans(),
    threads=st.integers(1, 3),
)
def test_the_compiled_step_equals_torchs(
    processor,
    structure,
    entities,
    vectors,
    n,
    block,
    tails,
    regulariser,
    dropout,
    relation_prediction,
    drawn,
    threads,
):
    kernel = kernel_for(processor)
    d = vectors * kernel.vector
    e, r, some = rows(entities, d, 1), rows(11, d, 2), batch(n, entities, 11, int(tails * n), drawn=drawn)
    asked = TrainingSettings(
        dropout=dropout,
        regulariser=regulariser,
        entity_weight=0.05,
        relation_weight=0.2,
        relation_prediction=relation_prediction,
    )
    kept = dropped(n, asked, np.random.default_rng(4), e)
    work = work_of(kernel, e, block)
    with with_threads(threads):
        found = compiled_gradients(structure, e, r, some, asked, work, kept)
        assert found is not None
        found = found[0], *map(torch.clone, found[1:])
        again = compiled_gradients(structure, e, r, some, asked, work, kept)
    assert again is not None
    assert found[0] == again[0], "the same numbers in every run"
    assert all(map(torch.equal, found[1:], again[1:]))
    exact = [x.double() for x in (e, r)]
    doubled = replace(some, targets=replace(some.targets, counts=some.targets.counts.double()))
    plain = torch_gradients(
        structure,
        *exact,
        doubled,
        asked,
        Workspace.for_block(exact[0], block),
        None if kept is None else kept.double(),
    )
    assert found[0] == pytest.approx(float(plain.loss), rel=1e-4)
    for compiled_one, exact_one in zip(found[1:], (plain.entities, plain.relations), strict=True):
        torch.testing.assert_close(compiled_one.double(), exact_one, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("processor", BY_PROCESSOR)
def test_powers_are_right_to_the_last_bits(processor):
    """One entity of length one: its scores are the queries' own numbers."""
    kernel = kernel_for(processor)
    asked = torch.linspace(-60, 60, 20_001)
    n, d = len(asked), kernel.vector
    q, e, ones = torch.zeros(n, d), torch.zeros(1, d), torch.ones(n)
    q[:, 0], e[0, 0] = asked, 1.0
    powers, by_query = torch.empty(kernel.powers_room(1, n)), torch.empty(n, d)
    scratch = torch.empty(kernel.step_room(1, d, n, n))
    no_draw = torch.empty(0)  # whose address is none
    arguments = [
        1,
        e,
        1,
        d,
        no_draw,
        q,
        n,
        ones,
        powers,
        torch.empty(n),
        by_query,
        torch.empty_like(e),
        0,
        scratch,
    ]
    given_ = [x.data_ptr() if isinstance(x, torch.Tensor) else x for x in arguments]
    kinds = [ctypes.c_void_p if isinstance(x, torch.Tensor) else ctypes.c_long for x in arguments]
    assert kernel.library.softmax(*(kind(x) for kind, x in zip(kinds, given_, strict=True)))
    raised = powers.view(-1, kernel.panel).reshape(-1)[:n].double()
    scaled = (asked * torch.tensor(1.4426950408889634)).double()  # rounded once, as the library does
    error = (raised / torch.exp2(scaled) - 1).abs()
    assert error.max() < 2e-7


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0, float("nan")])
def test_what_leaves_the_floats_is_done_again_by_torch(scale, drawn):
    """The loss is that of its definition, and what is not a number is seen."""
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    e, r, some = rows(500, 32, 1) * scale, rows(7, 32, 2) * scale, batch(200, 500, 7, 120, drawn=drawn)
    asked = TrainingSettings(regulariser="none")
    work = work_of(kernel, e, 128)
    found = multiclass_gradients(COMPLEX, e, r, some, asked, work)
    assert (compiled_gradients(COMPLEX, e, r, some, asked, work, None) is None) == (not scale <= 1)
    queries = ask(COMPLEX, e[some.entities], r[some.relations], some.tail_queries).double()
    doubled = replace(some.targets, counts=some.targets.counts.double())
    expected = multiclass_plainly(queries, e.double(), doubled) / some.triples
    assert float(found.loss) == pytest.approx(float(expected), rel=1e-4, abs=1e-3, nan_ok=True)


def test_relations_without_room_for_their_powers_are_left_to_torch():
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    e, r, some = rows(20, 32, 1), rows(30, 32, 2), batch(64, 20, 30, 64)
    work = work_of(kernel, e, 64)
    for weight, expected in ((0.0, False), (0.5, True)):
        asked = TrainingSettings(relation_prediction=weight)
        assert (compiled_gradients(COMPLEX, e, r, some, asked, work, None) is None) == expected


def test_only_what_fits_is_given_to_it():
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    fitting = torch.zeros(10, 2 * kernel.vector)
    assert kernel.suits(fitting, kernel.panel)
    assert not kernel.suits(fitting, kernel.panel - 1), "it would hold scores of queries that are not there"
    assert not kernel.suits(torch.zeros(10, kernel.vector + 4), 512)
    assert not kernel.suits(fitting.double(), 512)
    assert not kernel.suits(fitting.to("meta"), 512)
    assert not kernel.suits(torch.zeros(2 * kernel.vector, 10).T, 512)


def environ(folder: Path, **values: str) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(folder), **values}


def test_torchs_own_can_be_asked_for(tmp_path):
    with pytest.raises(Uncompiled, match="AUTOSF_KERNEL"):
        built(environ(tmp_path, AUTOSF_KERNEL="torch"))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_without_a_compiler_torch_does(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Uncompiled, match="no C compiler"):
        built(environ(tmp_path))


def compilers(folder: Path, script: str, *names: str) -> Path:
    """A folder of compilers that do what the script says."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_a_compiler_that_fails_leaves_nothing(tmp_path, monkeypatch):
    fake = compilers(tmp_path / "bin", r"printf 'f\351e: no room\n' >&2; exit 1", *compiled.COMPILERS)
    monkeypatch.setenv("PATH", f"{fake}:/usr/bin:/bin")
    with pytest.raises(Uncompiled, match="no room"):
        built(environ(tmp_path / "cache"))
    assert not list((tmp_path / "cache").rglob("*.so"))


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_another_compiler_does_what_the_first_cannot(tmp_path, monkeypatch):
    kernel_for(PLAYABLE[0])  # or there is none
    fake = compilers(tmp_path / "bin", "exit 1", "cc")
    monkeypatch.setenv("PATH", f"{fake}:{os.environ['PATH']}")
    assert built(environ(tmp_path / "cache")).panel


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_folders_are_made_for_the_user_alone(tmp_path):
    kernel_for(PLAYABLE[0])
    before = os.umask(0)
    try:
        built(environ(tmp_path / "cache"))
    finally:
        os.umask(before)
    made = [tmp_path / "cache", *(place for place in (tmp_path / "cache").rglob("*") if place.is_dir())]
    assert len(made) == 3
    assert {place.stat().st_mode & 0o777 for place in made} == {0o700}


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_a_library_that_others_may_change_is_not_loaded(tmp_path):
    try:
        built(environ(tmp_path))
    except Uncompiled as reason:
        pytest.skip(str(reason))
    (library,) = tmp_path.rglob("*.so")
    library.chmod(0o777)
    with pytest.raises(Uncompiled, match="others may write"):
        built(environ(tmp_path))


@contextmanager
def other_descriptors(count):
    """A library is known to the process by its folder's descriptor: one that no other test has loads it anew."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Path(os.devnull).open())
        yield


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_a_broken_library_is_made_again(tmp_path):
    try:
        built(environ(tmp_path / "whole"))
    except Uncompiled as reason:
        pytest.skip(str(reason))
    (library,) = (tmp_path / "whole").rglob("*.so")
    torn = tmp_path / "torn" / library.relative_to(tmp_path / "whole")
    torn.parent.mkdir(parents=True)
    content = library.read_bytes()
    for kept in (0, 1, len(content) // 10, len(content) * 9 // 10, len(content) - 1):
        for found in (content[:kept], content[:kept].ljust(len(content), b"\0")):
            torn.write_bytes(found)
            with pytest.raises(Torn):
                refuse_torn(torn)
    torn.write_bytes(content[: len(content) // 2])  # which the system would load, and then die of
    torn.chmod(0o700)
    with other_descriptors(16):
        assert built(environ(tmp_path / "torn")).panel
    assert torn.stat().st_size == library.stat().st_size


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_a_whole_library_that_does_not_load_is_not_made_again_and_again(tmp_path):
    try:
        built(environ(tmp_path))
    except Uncompiled as reason:
        pytest.skip(str(reason))
    (library,) = tmp_path.rglob("*.so")
    alien = b"from a disk that nothing may be executed from"
    library.unlink()  # a file in its place that the process has not loaded yet
    library.write_bytes(alien + sha256(alien).digest())
    library.chmod(0o700)
    with other_descriptors(48), pytest.raises(Uncompiled, match="invalid ELF header"):
        built(environ(tmp_path))
    assert library.read_bytes().startswith(alien)


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_sources_that_are_gone_are_no_end(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "FOLDER", tmp_path)
    with pytest.raises(Uncompiled, match=r"step\.c"):
        built(environ(tmp_path))


@pytest.mark.parametrize(("stands_for", "left_to_torch"), [(5e3, False), (1e6, True)])
def test_a_sum_that_would_lose_its_digits_is_left_to_torch(stands_for, left_to_torch):
    """Two entities that stand for many, and queries from one of them that the other answers: all are their own."""
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    n = kernel.panel
    sources, answers = torch.zeros(n, dtype=torch.int64), torch.ones(n, dtype=torch.int64)
    drawn = StandIns(torch.full((2,), stands_for), sources)
    targets = Targets(torch.arange(n), torch.arange(n), answers, torch.ones(n), drawn)
    e, r = rows(2, 32, 1), rows(1, 32, 2)
    asked, work = TrainingSettings(regulariser="none"), work_of(kernel, e, n)
    found = compiled_gradients(COMPLEX, e, r, Batch(sources, sources, n, targets, n), asked, work, None)
    assert (found is None) == left_to_torch


def test_a_training_without_it_goes_on(monkeypatch):
    monkeypatch.setattr(compiled, "built", lambda _: (_ for _ in ()).throw(Uncompiled("not here")))
    compiled.kernel.cache_clear()
    try:
        assert compiled.kernel() is None
        assert Workspace.of(torch.zeros(100, 64), 128, 0).kernel is None
    finally:
        compiled.kernel.cache_clear()


@pytest.mark.parametrize("processor", BY_PROCESSOR)
@pytest.mark.parametrize(("entities", "threads"), [(1, 1), (37, 2), (3000, 2)])
def test_the_compiled_adagrad_equals_torchs(processor, entities, threads):
    kernel = kernel_for(processor)
    gradients = [rows(entities, 19, seed) for seed in range(3)]
    gradients[1][0] = 0.0
    matrix = rows(entities, 19, 9)
    expected = matrix.clone().requires_grad_()
    theirs, sums = torch.optim.Adagrad([expected], lr=0.3), torch.zeros_like(matrix)
    for gradient in gradients:
        with with_threads(threads):
            kernel.adagrad(matrix, sums, gradient, 0.3)
        expected.grad = gradient.clone()
        theirs.step()
    torch.testing.assert_close(matrix, expected.detach())


@pytest.mark.parametrize("processor", BY_PROCESSOR)
def test_adagrad_on_some_rows_leaves_the_others(processor):
    kernel = kernel_for(processor)
    some, gradients = torch.tensor([3, 0, 700]), rows(3, 19, 1)
    matrix, sums = rows(900, 19, 9), rows(900, 19, 8).abs()
    whole, its_sums, gradient = matrix.clone(), sums.clone(), torch.zeros(900, 19)
    gradient[some] = gradients
    kernel.adagrad(whole, its_sums, gradient, 0.3)
    kernel.adagrad_rows(matrix, sums, some, gradients, 0.3)
    assert torch.equal(matrix, whole)
    assert torch.equal(sums, its_sums)


@pytest.mark.parametrize("drawn", [False, True])
def test_gradients_do_not_depend_on_how_many_work(drawn):
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    e, r, some = rows(700, 64, 1), rows(7, 64, 2), batch(300, 700, 7, 170, drawn=drawn)
    asked, work, found = TrainingSettings(relation_prediction=0.5), work_of(kernel, e, 128), []
    with with_threads(3):
        for hands in (3, 2, 1):
            kernel.hands.work(3, lambda: True)  # the number of threads is known, and changed no more
            kernel.library.limit_hands(hands)
            loss, by_entity, by_relation = compiled_gradients(COMPLEX, e, r, some, asked, work, None)
            found.append((loss, by_entity.clone(), by_relation.clone()))
    kernel.library.limit_hands(3)
    for loss, by_entity, by_relation in found[1:]:
        assert loss == found[0][0]
        assert torch.equal(by_entity, found[0][1])
        assert torch.equal(by_relation, found[0][2])


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_both_sides_mean_the_same_fields_of_a_step(tmp_path):
    try:
        library = built(environ(tmp_path)).library
    except Uncompiled as reason:
        pytest.skip(str(reason))
    library.step_size.restype = ctypes.c_long
    assert library.step_size() == ctypes.sizeof(Step)
