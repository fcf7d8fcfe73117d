"""Who may ask, how often and how much, before any request reaches the site; and what every answer carries.

A request passes if its Host is one of ours (another name that was pointed at this machine is not), its client
has asked no more than it may, it shows the token where there is one, and its body is small.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LONGEST_BODY = 256 << 10
RATE, BURST = 50.0, 200  # requests a second of one client, and how many it may have saved up
MOST_CLIENTS = 4096  # that are remembered
COOKIE_SECONDS = 7 * 24 * 3600
TO_STRANGERS = (
    "a token is needed: open the link that autosf serve printed, or send it as Authorization: Bearer"
)
SAFE_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        b" base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


@dataclass(frozen=True, slots=True)
class Policy:
    """Names the server answers to, the token if one is asked for, and the rate of a client."""

    names: frozenset[str]
    any_address: bool = False  # Host may be any IP address: bound to all, it has several
    token: str | None = None
    rate: float = RATE
    burst: int = BURST
    cookie: str = "autosf"


def guarded(app: App, policy: Policy, clock: Callable[[], float]) -> App:
    """The site behind its guard."""
    purses = Purses(policy.rate, policy.burst, clock)

    async def guard(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await app(scope, receive, send)
        if scope["type"] != "http":
            return None
        safe = with_safe_headers(send)
        headers = dict(scope["headers"])
        if not is_our_name(headers.get(b"host", b"").decode("latin-1"), policy):
            return await refuse(safe, 421, "this server does not answer to that Host")
        if not purses.spend(source_of(scope["client"][0] if scope.get("client") else "")):
            return await refuse(safe, 429, "too many requests; wait a moment", ((b"retry-after", b"1"),))
        if policy.token is not None and (shown := link_token(scope)) is not None:
            return await let_in_by_link(scope, shown, safe, policy)
        if policy.token is not None and not shows_token(headers, policy):
            return await refuse(safe, 401, TO_STRANGERS, ((b"www-authenticate", b"Bearer"),))
        return await app(scope, limited(receive, headers), safe)

    return guard


def with_safe_headers(send: Send) -> Send:
    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *SAFE_HEADERS]
        await send(message)

    return safe


async def refuse(send: Send, status: int, error: str, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Answer with one line of JSON."""
    body = json.dumps({"error": error, "suggestions": []}).encode()
    own = ((b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*own, (b"cache-control", b"no-store"), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


def is_our_name(host: str, policy: Policy) -> bool:
    """Whether a Host header, its port left out, is a name or address of this server."""
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    name = name.lower().rstrip(".")
    return name in policy.names or (policy.any_address and is_address(name))


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def source_of(address: str) -> str:
    """An address; of IPv6 its first half, as whoever has one address has all that share it."""
    if not is_address(address) or ip_address(address).version == 4:
        return address
    return str(ip_network(f"{address}/64", strict=False).network_address)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to this host."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


class Purses:
    """Owns what each client may still ask: a purse fills by `rate` a second up to `burst`; the oldest are lost."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._purses: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def spend(self, client: str) -> bool:
        """Whether the client may ask once more."""
        now = self._clock()
        left, then = self._purses.pop(client, (float(self._burst), now))
        left = min(float(self._burst), left + (now - then) * self._rate)
        self._purses[client] = (left - 1 if left >= 1 else left, now)
        if len(self._purses) > MOST_CLIENTS:
            self._purses.popitem(last=False)
        return left >= 1


def shows_token(headers: dict[bytes, bytes], policy: Policy) -> bool:
    """Whether a request carries the token, or the cookie that stands for it; compared in constant time."""
    assert policy.token is not None
    scheme, _, shown = headers.get(b"authorization", b"").partition(b" ")
    by_header = hmac.compare_digest(shown.strip(), policy.token.encode()) and scheme.lower() == b"bearer"
    expected = cookie_value(policy.token).encode()
    by_cookie = [hmac.compare_digest(value, expected) for value in cookies_in(headers, policy.cookie)]
    return by_header or any(by_cookie)


def cookies_in(headers: dict[bytes, bytes], name: str) -> list[bytes]:
    """The cookies of a name; what other servers of the same host have set may have any form."""
    pairs = [part.strip().partition(b"=") for part in headers.get(b"cookie", b"").split(b";")]
    return [value for found, _, value in pairs if found == name.encode()]


def cookie_value(token: str) -> str:
    """What the browser keeps: the token cannot be had from it."""
    return hmac.new(token.encode(), b"autosf cookie", hashlib.sha256).hexdigest()


def link_token(scope: MutableMapping[str, Any]) -> str | None:
    """What an address with ?token= shows; None where it has none."""
    if b"token=" not in scope["query_string"]:
        return None
    return dict(asked_in(scope)).get("token")


def asked_in(scope: MutableMapping[str, Any]) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


async def let_in_by_link(scope: MutableMapping[str, Any], shown: str, send: Send, policy: Policy) -> None:
    """A link with ?token= sets the cookie and leads to the same address without it; a wrong one is refused."""
    assert policy.token is not None
    is_right = hmac.compare_digest(shown.encode(), policy.token.encode())
    if not is_right or scope["method"] != "GET":
        await refuse(send, 401, TO_STRANGERS, ((b"www-authenticate", b"Bearer"),))
        return
    rest = urlencode([(name, value) for name, value in asked_in(scope) if name != "token"])
    path = "/" + quote(scope["path"]).lstrip("/")  # two slashes would begin the name of another server
    cookie = f"{policy.cookie}={cookie_value(policy.token)}; Path=/; Max-Age={COOKIE_SECONDS}"
    headers = [
        (b"location", (path + (f"?{rest}" if rest else "")).encode("latin-1")),
        (b"set-cookie", f"{cookie}; HttpOnly; SameSite=Strict".encode("latin-1")),
        (b"cache-control", b"no-store"),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class TooLarge(Exception):  # noqa: N818 - the client's mistake
    """A body that is longer than LONGEST_BODY."""


def limited(receive: Receive, headers: dict[bytes, bytes]) -> Receive:
    """The body as it comes, until it is too long, whatever its length was said to be."""
    announced = headers.get(b"content-length", b"0")
    taken = 0

    async def receive_some() -> Message:
        nonlocal taken
        if announced.isdigit() and int(announced[:20]) > LONGEST_BODY:
            raise TooLarge
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LONGEST_BODY:
            raise TooLarge
        return message

    return receive_some


def new_token() -> str:
    return secrets.token_urlsafe(24)
