"""`autosf serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from autosf.app import completing
from autosf.app.answer import answer, json_option
from autosf.app.commands.models import graph_option

if TYPE_CHECKING:
    from autosf.app.web.guard import Policy
    from autosf.app.web.site import Site

PORT = 8765
LEAST_TOKEN = 8


@click.command(epilog="Example: autosf serve umls-search --port 8765")
@click.argument(
    "served", metavar="RUN_OR_MODEL", type=click.Path(path_type=Path), shell_complete=completing.models
)
@click.option("--port", type=click.IntRange(0, 65535), help=f"[default: {PORT}, or any that is free]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--token", help="Needed by every request. [default: none here, a new one on another --host]")
@click.option(
    "--name", "names", multiple=True, help="Host name it is reached by, beside its own; repeatable."
)
@click.option("--rate", type=click.FloatRange(1), help="Requests a second of one client. [default: 50]")
@graph_option
@json_option
def serve(
    served: Path,
    port: int | None,
    host: str,
    token: str | None,
    names: tuple[str, ...],
    rate: float | None,
    source: str | None,
    as_json: bool,
) -> None:
    """Show a search as it runs, or a model, in a browser.

    Under the same address is a JSON API; /api describes it. Only this machine can reach it, unless --host
    says otherwise: then every request needs a token. Ctrl-C ends it.
    """
    refuse_missing_extra()
    from autosf.app.web.server import application, listening
    from autosf.app.web.server import serve as answer_requests

    site = site_of(served, source)
    with listening(host, port, PORT) as listener:
        bound = listener.getsockname()[1]
        policy = policy_of(host, bound, token, names, rate)
        url = url_of(host, bound, policy.token)

        def started() -> None:
            shown = f"{site.name}: {url}\nCtrl-C ends it."
            answer({"url": url, "token": policy.token}, as_json, lambda: shown)

        answer_requests(application(site, policy, started), listener, to_strangers=policy.any_address)


def refuse_missing_extra() -> None:
    from importlib.util import find_spec

    from autosf.errors import lacks_extra

    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise lacks_extra("autosf serve", "web")


def site_of(folder: Path, graph: str | None) -> Site:
    """What a folder has to show: a run, with or without its model, or a model; it is loaded now."""
    from autosf.app.run_results import is_run
    from autosf.app.web.site import Site
    from autosf.app.web.watching import Watch
    from autosf.embedding.model_folder import is_model_folder
    from autosf.runs.run import open_run

    name = folder.resolve().name
    if not is_run(folder):
        if not is_model_folder(folder):
            refuse_unready(folder)
        site = Site(name, folder, None, graph)
        site.load()
        return site
    run = open_run(folder)
    site = Site(name, run.model, Watch(run), graph)
    if is_model_folder(run.model):
        site.load()
    return site


def refuse_unready(folder: Path) -> None:
    """Tell of a search that has not begun; of anything else the model's reader tells."""
    from autosf.app.tuned_first import refuse_tuning

    refuse_tuning(folder)


def policy_of(host: str, port: int, token: str | None, names: tuple[str, ...], rate: float | None) -> Policy:
    """Who may ask: on this machine anyone, from elsewhere who has the token."""
    import socket

    from autosf.app.web.guard import BURST, RATE, Policy, is_loopback, new_token
    from autosf.errors import UserError

    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UserError(f"--token: expected at least {LEAST_TOKEN} letters, digits or signs")
    here = is_loopback(host)
    own = {"localhost", "127.0.0.1", "::1"} if here else {socket.gethostname().lower()}
    return Policy(
        names=frozenset({host.lower(), *own, *(name.lower() for name in names)}),
        any_address=not here,
        token=token if token is not None or here else new_token(),
        rate=rate or RATE,
        burst=max(BURST, int(2 * (rate or 0))),
        cookie=f"autosf-{port}",
    )


def url_of(host: str, port: int, token: str | None) -> str:
    """The address to open, with the token that lets one in."""
    import socket
    from urllib.parse import quote

    name = socket.gethostname() if host in ("0.0.0.0", "::") else host  # noqa: S104 - bound to all
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{port}/" + (f"?token={quote(token)}" if token else "")
