"""The API holds what its description says, whatever is sent: no 5xx, no hang, no answer of another shape."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from autosf.app.request import Request
from autosf.app.searching import begun, served
from autosf.app.web.guard import Policy
from autosf.app.web.openapi import PATHS
from autosf.app.web.server import application
from autosf.app.web.site import Site
from autosf.app.web.watching import Watch
from autosf.embedding.model_folder import save_model
from autosf.embedding.settings import TrainingSettings
from autosf.graph.synthetic import patterned_graph
from random_models import STRANGE_LABELS, random_graph, random_model

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
EXAMPLES = 25  # of each operation
LABELS = STRANGE_LABELS[:4]  # of entities and of relations


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """A run with some records, and beside it a model with strange labels."""
    place = tmp_path_factory.mktemp("fuzzed")
    graph = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1)
    short = TrainingSettings(epochs=2, dimension=8)
    run = begun(graph, Request("", short, strategy="random", trials=2), place / "run")
    served(run, workers=1)
    made = random_model(random_graph(labels=STRANGE_LABELS))
    site = Site("run", save_model(run.model, made), Watch(run))
    site.load()
    app = application(site, Policy(names=frozenset({"testserver"}), rate=1e6, burst=10**6))
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_whatever_is_sent_is_answered_as_described(api, path, method, mode):
    operation = api[path][method]
    if mode == GenerationMode.NEGATIVE and not (operation.query or operation.body):
        pytest.skip("nothing to send, so that nothing of it can be wrong")

    @given(case=operation.as_strategy(generation_mode=mode), label=st.sampled_from(LABELS) | st.none())
    @settings(max_examples=EXAMPLES, deadline=20_000, suppress_health_check=list(HealthCheck))
    def fuzzed(case, label):
        if mode == GenerationMode.POSITIVE and label is not None:
            put(label, case.query)
            put(label, case.body)
        case.call_and_validate(checks=CHECKS)

    fuzzed()


def put(label: str, sent: object) -> None:
    """Replace made-up labels by one that is known, so that there is something to answer."""
    if isinstance(sent, list):
        for row in sent:
            put(label, row)
    elif isinstance(sent, dict):
        for role in {"head", "relation", "tail", "entity"} & set(sent):
            sent[role] = label
        put(label, [*sent.get("queries", ()), *sent.get("triples", ())])
