"""The compiled passes against torch's own, for every processor this machine can play, and their refusals."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autosf.embedding import compiled
from autosf.embedding.compiled import BY_PROCESSOR, Kernel, Uncompiled, built
from autosf.embedding.multiclass import Targets, Workspace, multiclass, multiclass_plainly, raised, spread

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


@pytest.mark.parametrize("processor", BY_PROCESSOR)
@settings(max_examples=25, deadline=None)
@given(
    entities=st.integers(1, 700),
    vectors=st.integers(1, 9),
    n=st.integers(1, 200),
    threads=st.integers(1, 3),
    in_columns=st.booleans(),
    add=st.booleans(),
)
def test_the_compiled_passes_equal_torchs(processor, entities, vectors, n, threads, in_columns, add):
    kernel = kernel_for(processor)
    d = vectors * kernel.vector
    e, q, weights = rows(entities, d, 1), rows(n, d, 2), torch.rand(n) + 0.5
    asked = q.T.contiguous().T if in_columns else q
    kept, powers = torch.empty(kernel.room(entities, n)), torch.empty(entities, n)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        sums, by_query = kernel.raised(asked, e, kept)
        again, _ = kernel.raised(asked, e, kept)
        found, expected = torch.ones(entities, d), torch.ones(entities, d)
        kernel.spread(asked, weights, kept, found, add=add)
    finally:
        torch.set_num_threads(before)
    plain_sums, plain_by_query = raised(q, e, powers)
    spread(q, weights, powers, expected, add=add)
    torch.testing.assert_close(sums, plain_sums, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(by_query, plain_by_query, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    assert torch.equal(sums, again), "the same numbers in every run"


@pytest.mark.parametrize("processor", BY_PROCESSOR)
def test_powers_are_right_to_the_last_bits(processor):
    """One entity of length one: its scores are the queries' own numbers."""
    kernel = kernel_for(processor)
    asked = torch.linspace(-80, 80, 20_001)
    q, e = torch.zeros(len(asked), kernel.vector), torch.zeros(1, kernel.vector)
    q[:, 0], e[0, 0] = asked, 1.0
    sums, _ = kernel.raised(q, e, torch.empty(kernel.room(1, len(asked))))
    scaled = (asked * torch.tensor(1.4426950408889634)).double()  # rounded once, as the library does
    error = (sums.double() / torch.exp2(scaled) - 1).abs()
    assert error.max() < 2e-7


def wanted(n: int, entities: int) -> Targets:
    answers = torch.randint(0, entities, (n,), generator=torch.Generator().manual_seed(3))
    return Targets(torch.arange(n), torch.arange(n), answers, torch.ones(n))


@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
@pytest.mark.parametrize("block", [64, 128, 200])
def test_the_loss_is_that_of_its_definition(scale, block):
    """Also where powers overflow and a block is done again."""
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    e, q = (rows(n, 32, n) * scale for n in (500, 200))
    e, q = e.requires_grad_(), q.requires_grad_()
    loss = multiclass_plainly(
        q.double(), e.double(), replace(wanted(200, 500), counts=torch.ones(200).double())
    )
    loss.backward()
    work = replace(Workspace.for_block(e.detach(), block), kernel=kernel)
    work = replace(work, scores=torch.empty(kernel.room(500, block)))
    found, by_query, by_entity = multiclass(q.detach(), e.detach(), wanted(200, 500), work)
    torch.testing.assert_close(found.double(), loss.detach(), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(by_query, q.grad, rtol=1e-3, atol=1e-3 * scale)
    torch.testing.assert_close(by_entity, e.grad, rtol=1e-3, atol=1e-3 * scale)


def test_what_is_not_a_number_is_seen():
    kernel = kernel_for(PLAYABLE[0] if PLAYABLE else "AVX2")
    e, q = rows(300, 32, 1), rows(70, 32, 2)
    e[250, 5] = float("nan")
    sums, _ = kernel.raised(q, e, torch.empty(kernel.room(300, 70)))
    assert sums.isnan().all()


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


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_a_compiler_that_fails_leaves_nothing(tmp_path, monkeypatch):
    script = tmp_path / "bin" / "cc"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    with pytest.raises(Uncompiled, match="no room"):
        built(environ(tmp_path / "cache"))
    assert not list((tmp_path / "cache").rglob("*.so"))


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


@pytest.mark.skipif(not PLAYABLE, reason="written for other processors")
def test_a_broken_library_is_no_end(tmp_path):
    try:
        built(environ(tmp_path / "whole"))
    except Uncompiled as reason:
        pytest.skip(str(reason))
    (library,) = (tmp_path / "whole").rglob("*.so")
    torn = tmp_path / "torn" / library.relative_to(tmp_path / "whole")
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"\x7fELF, and then nothing")
    torn.chmod(0o700)
    with pytest.raises(Uncompiled, match="softmax-"):
        built(environ(tmp_path / "torn"))


def test_a_training_without_it_goes_on(monkeypatch):
    monkeypatch.setattr(compiled, "built", lambda _: (_ for _ in ()).throw(Uncompiled("not here")))
    compiled.kernel.cache_clear()
    try:
        assert compiled.kernel() is None
        assert Workspace.of(torch.zeros(100, 64), 128, 0).kernel is None
    finally:
        compiled.kernel.cache_clear()
