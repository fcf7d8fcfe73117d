"""The API in OpenAPI 3.1: what programs, people and the tests that bombard it go by."""

from __future__ import annotations

from typing import Any

from autosf import __version__

MOST_TOP = 100  # answers of a question
MOST_ROWS = 200  # rows of a leaderboard, labels that complete a text
MOST_AT_ONCE = 256  # questions or triples in one request

Schema = dict[str, Any]


def nullable(kind: str) -> Schema:
    return {"type": [kind, "null"]}


def listed(item: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": item, **limits}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def named(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
SHARE: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
ROWS = listed(listed({"type": "integer"}))
TOP: Schema = {"type": "integer", "minimum": 1, "maximum": MOST_TOP, "default": 10}
KNOWN: Schema = {"type": "string", "enum": ["mark", "hide"], "default": "mark"}
ANSWER = {"score": nullable("number"), "probability": SHARE, "known": nullable("boolean")}
PREDICTIONS = listed({"anyOf": [named("EntityAnswer"), named("RelationAnswer")]})
FINALIST = {
    "structure": ROWS,
    "names": listed(TEXT),
    "valid_mrr": NUMBER,
    "spread": nullable("number"),
    "seeds": COUNT,
}
SEARCH = {
    "state": {"type": "string", "enum": ["running", "stopped", "playoff", "training", "ended"]},
    "ending": nullable("string"),
    "decided_by": nullable("string"),
    "version": TEXT,
    "trials": COUNT,
    "structures": COUNT,
    "seconds": NUMBER,
}

SCHEMAS: dict[str, Schema] = {
    "Error": record({"error": TEXT, "suggestions": listed(TEXT)}),
    "EntityAnswer": record({"entity": TEXT, **ANSWER}),
    "RelationAnswer": record({"relation": TEXT, **ANSWER}),
    "Query": {
        **record({}, {"head": TEXT, "relation": TEXT, "tail": TEXT}),
        "minProperties": 2,
        "maxProperties": 2,
    },
    "Triple": record({"head": TEXT, "relation": TEXT, "tail": TEXT}),
    "Verdict": record(
        {
            "head": TEXT,
            "relation": TEXT,
            "tail": TEXT,
            "score": nullable("number"),
            "probability": SHARE,
            "likely": nullable("boolean"),
            "known": nullable("boolean"),
            "head_rank": nullable("number"),
            "tail_rank": nullable("number"),
        }
    ),
    "Finalist": record(FINALIST),
    "Best": record(
        {
            **FINALIST,
            "formula": TEXT,
            "blocks": COUNT,
            "runner_up": {"anyOf": [named("Finalist"), {"type": "null"}]},
            "beats_runner_up": SHARE,
            "human": {"anyOf": [named("Finalist"), {"type": "null"}]},
            "beats_human": SHARE,
        }
    ),
    "Standing": record({**FINALIST, "epochs": COUNT, "trial_epochs": COUNT, "blocks": COUNT}),
    "Played": record(
        {
            "structure": ROWS,
            "names": listed(TEXT),
            "valid_mrr": nullable("number"),
            "spread": nullable("number"),
            "seeds": COUNT,
        }
    ),
    "Running": record(
        {
            "worker": nullable("integer"),
            "structure": ROWS,
            "names": listed(TEXT),
            "formula": TEXT,
            "seed": COUNT,
            "epoch": COUNT,
            "epochs": COUNT,
            "valid_mrr": nullable("number"),
        }
    ),
    "Search": record(
        {
            **SEARCH,
            "failed": COUNT,
            "best_mrr": nullable("number"),
            "strategy": TEXT,
            "running": listed(named("Running")),
        }
    ),
    "Model": record(
        {
            "graph": TEXT,
            "entities": COUNT,
            "relations": COUNT,
            "structure": ROWS,
            "names": listed(TEXT),
            "dimension": COUNT,
            "knows_triples": {"type": "boolean"},
            "has_probabilities": {"type": "boolean"},
        }
    ),
    "Facts": record(
        {
            "relation": TEXT,
            "direction": {"type": "string", "enum": ["out", "in"]},
            "count": COUNT,
            "entities": listed(TEXT),
        }
    ),
}

REFUSALS = {
    "400": "A parameter or the body is not as described; the error names it.",
    "401": "A token is needed.",
    "404": "A label is unknown; the nearest are suggested.",
    "409": "There is no model yet, or no search.",
    "413": "The body is too long.",
    "415": "The body is not JSON.",
    "429": "Too many requests.",
}
ALWAYS = ("400", "401", "429")


def answer(schema: Schema, said: str) -> Schema:
    return {"description": said, "content": {"application/json": {"schema": schema}}}


def responses(schema: Schema, said: str, *refused: str) -> dict[str, Schema]:
    return {
        "200": answer(schema, said),
        **{code: answer(named("Error"), REFUSALS[code]) for code in sorted({*ALWAYS, *refused})},
    }


def parameter(name: str, schema: Schema, said: str, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": required, "description": said, "schema": schema}


def get(identity: str, summary: str, parameters: list[Schema], answers: dict[str, Schema]) -> Schema:
    return {"operationId": identity, "summary": summary, "parameters": parameters, "responses": answers}


def post(identity: str, summary: str, body: Schema, answers: dict[str, Schema]) -> Schema:
    content = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"operationId": identity, "summary": summary, "requestBody": content, "responses": answers}


def completing(name: str, many: str) -> Schema:
    limit = {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": 10}
    found = record({many: listed(record({name: TEXT, "uses": COUNT}))})
    return get(
        many,
        f"{many.capitalize()} whose label begins with a text, then those that hold it; the busiest first",
        [
            parameter("q", TEXT, "The text; empty for the busiest of all."),
            parameter("limit", limit, "How many."),
        ],
        responses(found, "Labels, each with the number of triples that have it.", "409"),
    )


PATHS: dict[str, Any] = {
    "/api/predict": {
        "get": get(
            "predict",
            "The best answers of a question: two of head, relation and tail are given, the third is asked for",
            [
                *(parameter(role, TEXT, f"Label of the {role}.") for role in ("head", "relation", "tail")),
                parameter("top", TOP, "How many answers."),
                parameter("known", KNOWN, "Mark the answers that the graph has already, or hide them."),
            ],
            responses(record({"predictions": PREDICTIONS}), "Answers, best first.", "404", "409"),
        ),
        "post": post(
            "predictMany",
            "The best answers of many questions",
            record(
                {"queries": listed(named("Query"), minItems=1, maxItems=MOST_AT_ONCE)},
                {"top": TOP, "known": KNOWN},
            ),
            responses(
                record(
                    {
                        "results": listed(
                            record(
                                {"predictions": PREDICTIONS}, {"head": TEXT, "relation": TEXT, "tail": TEXT}
                            )
                        )
                    }
                ),
                "The questions in their order, each with its answers.",
                "404", "409", "413", "415",
            ),
        ),
    },
    "/api/classify": {
        "get": get(
            "classify",
            "Whether a triple is likely true, and its places among all with another head or tail",
            [parameter(role, TEXT, f"Label of the {role}.", True) for role in ("head", "relation", "tail")],
            responses(named("Verdict"), "The verdict.", "404", "409"),
        ),
        "post": post(
            "classifyMany",
            "Whether many triples are likely true",
            record({"triples": listed(named("Triple"), minItems=1, maxItems=MOST_AT_ONCE)}),
            responses(
                record({"results": listed(named("Verdict"))}),
                "The verdicts, in the order of the triples.",
                "404", "409", "413", "415",
            ),
        ),
    },
    "/api/entities": {"get": completing("entity", "entities")},
    "/api/relations": {"get": completing("relation", "relations")},
    "/api/neighbours": {
        "get": get(
            "neighbours",
            "What the graph says of an entity, by relation, and the entities that are embedded most alike",
            [
                parameter("entity", TEXT, "Its label.", True),
                parameter("limit", {**TOP, "default": 8}, "Entities of each list."),
            ],
            responses(
                record(
                    {
                        "entity": TEXT,
                        "uses": COUNT,
                        "facts": listed(named("Facts")),
                        "similar": listed(record({"entity": TEXT, "similarity": nullable("number")})),
                    }
                ),
                "Facts and similar entities.",
                "404", "409",
            ),
        )
    },
    "/api/leaderboard": {
        "get": get(
            "leaderboard",
            "The best structures of the search so far",
            [
                parameter(
                    "limit",
                    {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": 20},
                    "How many rows.",
                )
            ],
            responses(
                record(
                    {
                        **SEARCH,
                        "best": {"anyOf": [named("Best"), {"type": "null"}]},
                        "leaderboard": listed(named("Standing")),
                        "playoff": {"anyOf": [listed(named("Played")), {"type": "null"}]},
                    }
                ),
                "The leaderboard.",
                "409",
            ),
        )
    },
    "/api/status": {
        "get": get(
            "status",
            "What is served here, the state of the search and its running trials",
            [],
            responses(
                record(
                    {
                        "name": TEXT,
                        "autosf": TEXT,
                        "search": {"anyOf": [named("Search"), {"type": "null"}]},
                        "model": {"anyOf": [named("Model"), {"type": "null"}]},
                        "model_state": {"type": "string", "enum": ["none", "loading", "ready", "failed"]},
                    }
                ),
                "The state.",
                "409",
            ),
        )
    },
    "/api/health": {
        "get": get(
            "health",
            "Whether the server answers",
            [],
            responses(record({"status": {"type": "string", "const": "ok"}}), "It does."),
        )
    },
}  # fmt: skip

DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {
        "title": "AutoSF",
        "version": __version__,
        "description": "Questions to a trained scoring function, and the state of the search that found it."
        " Probabilities are calibrated on validation triples, half of them made false.",
    },
    "paths": PATHS,
    "components": {
        "schemas": SCHEMAS,
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
    "security": [{}, {"token": []}],
}
