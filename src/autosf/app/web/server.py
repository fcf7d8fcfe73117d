"""The application: addresses and who answers them, behind the guard; and the socket it listens on."""

from __future__ import annotations

import logging
import socket
import time
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from autosf.app.pages import read as shared_file
from autosf.app.web import api, drawings
from autosf.app.web.guard import LONGEST_BODY, Policy, TooLarge, guarded
from autosf.app.web.refusals import Refused
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import uvicorn
    from starlette.requests import Request

    from autosf.app.web.guard import App
    from autosf.app.web.site import Site

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
PAGES = {"/live": "live.html", "/explore": "explore.html", "/api": "api.html"}
SHARED = ("style.css", "charts.css")  # of all pages, the report's too
OWN_FILES = files("autosf.app.web").joinpath("pages")
OWN = ("web.css", "common.js", "live.js", "explore.js", "combobox.js", "picture.js", "api.js", "icon.svg")
log = logging.getLogger("autosf.serve")


def application(site: Site, policy: Policy, started: Callable[[], None] = lambda: None) -> App:
    """The whole site; `started` is told when it is ready to answer."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        started()
        yield

    routes = [  # tried in this order: what is asked most comes first
        Route("/api/predict", api.predict),
        Route("/api/entities", api.entities),
        Route("/api/relations", api.relations),
        Route("/api/classify", api.classify),
        Route("/api/neighbours", api.neighbours),
        Route("/api/status", api.status),
        Route("/api/leaderboard", api.leaderboard),
        Route("/api/predict", api.predict_many, methods=["POST"]),
        Route("/api/classify", api.classify_many, methods=["POST"]),
        Route("/api/health", api.health),
        Route("/api/openapi.json", api.description),
        Route("/drawings/structure.svg", drawings.structure),
        Route("/drawings/search.svg", drawings.search_curve),
        Route("/drawings/curves.svg", drawings.learning_curves),
        Route("/", first_page),
        *(Route(path, page(name)) for path, name in PAGES.items()),
        *(Route(f"/assets/{name}", page(name)) for name in (*SHARED, *OWN)),
    ]
    inner = Starlette(routes=routes, exception_handlers=HANDLERS, lifespan=lifespan)
    inner.state.site = site
    return guarded(inner, policy, time.monotonic)


def page(name: str) -> Callable[[Request], Any]:
    """The answer of an address that is a file of the package; no request names a file."""
    content = shared_file(name).encode() if name in SHARED else OWN_FILES.joinpath(name).read_bytes()
    kind = KINDS[name[name.rindex(".") :]]

    async def answer(_: Request) -> Response:
        return Response(content, headers={"Cache-Control": "no-cache"}, media_type=kind)

    return answer


async def first_page(request: Request) -> Response:
    """The live view of a run, the explorer of a model."""
    return RedirectResponse("/live" if api.site_of(request).watch else "/explore", 303)


async def refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    found = error.refusal
    return api.as_json({"error": found.error, "suggestions": found.suggestions}, found.status)


async def not_served(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = api.as_json({"error": str(error.detail).lower(), "suggestions": []}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


async def too_large(_: Request, __: Exception) -> Response:
    error = f"body: expected at most {LONGEST_BODY >> 10} KiB, found more"
    return api.as_json({"error": error, "suggestions": []}, 413)


async def failed(_: Request, __: Exception) -> Response:
    """Our own mistake: its traceback is in the server's log, not in the answer."""
    return api.as_json({"error": "the server made a mistake; its log says more", "suggestions": []}, 500)


HANDLERS: dict[Any, Any] = {
    Refused: refused,
    HTTPException: not_served,
    TooLarge: too_large,
    Exception: failed,
}


def listening(host: str, port: int | None, default: int) -> socket.socket:
    """A socket that listens; without a port, on the default one if it is free, or on any that is."""
    for chosen in (default, 0) if port is None else (port,):
        try:
            family = socket.getaddrinfo(host, chosen, type=socket.SOCK_STREAM)[0][0]
            listener = socket.create_server((host, chosen), family=family, backlog=256)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer may wait 40 ms
            return listener
        except (OSError, OverflowError) as error:
            problem = error
    reason = getattr(problem, "strerror", None) or str(problem)
    raise UserError(
        f"{host}:{port if port is not None else default}: cannot listen there ({reason});"
        " give another --host or --port (0: any that is free)"
    )


def serve(app: App, listener: socket.socket, to_strangers: bool) -> None:
    """Answer until Ctrl-C."""
    import uvicorn

    uvicorn.Server(configured(app, to_strangers)).run(sockets=[listener])


def configured(app: App, to_strangers: bool) -> uvicorn.Config:
    """How it answers. Strangers may send headers without end, which only the slower parser refuses."""
    import uvicorn

    from autosf.app.web.connections import MOST, Connection

    return uvicorn.Config(
        app,
        http=Connection if to_strangers else "auto",
        proxy_headers=False,  # whoever asks may not say who he is
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MOST,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=2,
    )
