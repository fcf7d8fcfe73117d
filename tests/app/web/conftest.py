"""A small site to ask: a random model whose labels are as hostile as labels can be, and a client on it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from autosf.app.predicting import AskableModel
from autosf.app.web.guard import Policy
from autosf.app.web.server import application
from autosf.app.web.site import Site
from autosf.embedding.model_folder import save_model
from autosf.embedding.trained_model import TrainedModel
from random_models import STRANGE_LABELS, random_graph, random_model

HERE = Policy(names=frozenset({"localhost"}), rate=1e6, burst=10**6)


@pytest.fixture(scope="session")
def trained() -> TrainedModel:
    return random_model(random_graph(entities=40, relations=18, triples=300, labels=STRANGE_LABELS))


@pytest.fixture
def asked(trained) -> AskableModel:
    return AskableModel(trained)


@pytest.fixture
def site_with(tmp_path) -> Callable[..., Site]:
    """A site of a model, saved and loaded as a user's."""

    def made(trained: TrainedModel, **options: bool) -> Site:
        site = Site("a model", Path(save_model(tmp_path / "model", trained, **options)))
        site.load()
        return site

    return made


@pytest.fixture
def client_of() -> Callable[..., TestClient]:
    def made(site: Site, policy: Policy = HERE) -> TestClient:
        app = application(site, policy)
        return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    return made


@pytest.fixture
def client(site_with, client_of, trained) -> TestClient:
    return client_of(site_with(trained))
