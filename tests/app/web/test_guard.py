"""Strangers, rebound names, floods and long bodies stop at the door; every answer carries the safe headers."""

from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from autosf.app.commands.serve import policy_of, url_of
from autosf.app.web.guard import Policy, Purses, cookie_value, is_loopback, is_our_name
from autosf.app.web.server import application
from autosf.errors import UserError

TOKEN = "a-token-of-length"
HERE = Policy(names=frozenset({"localhost"}), rate=1e6, burst=10**6)
TOKENED = replace(HERE, token=TOKEN)
PATHS = [
    "/",
    "/live",
    "/explore",
    "/api",
    "/api/openapi.json",
    "/api/health",
    "/api/status",
    "/assets/web.css",
]


@pytest.fixture
def locked(site_with, client_of, trained):
    return client_of(site_with(trained), TOKENED)


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_answered(locked, path):
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": TOKEN},
        {"cookie": f"autosf={TOKEN}"},
    ):
        answer = locked.get(path, headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert locked.get(path, params={"token": "wrong"}).status_code == 401
    assert locked.post(path, params={"token": TOKEN}).status_code == 401


def test_the_token_opens_as_a_header_and_by_a_link(locked):
    assert locked.get("/api/health", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    answer = locked.get("/api/entities", params={"q": "a b&c", "token": TOKEN}, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/api/entities?q=a+b%26c"
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly; SameSite=Strict" in cookie
    assert locked.get("/api/health").status_code == 200, "the cookie is enough from now on"


@pytest.mark.parametrize(
    "foreign", ["foo; ", "name@x=1; ", 'prefs={"a":1}; ', "é=ü; ", "autosf=old; ", "a=b=c;", "; "]
)
def test_cookies_of_other_servers_on_the_host_do_no_harm(locked, foreign):
    ours = f"autosf={cookie_value(TOKEN)}"
    for cookies in (foreign + ours, ours + "; " + foreign):
        headers = {"cookie": cookies.encode("latin-1")}
        assert locked.get("/api/health", headers=headers).status_code == 200
    headers = {"cookie": foreign.encode("latin-1") + b"x" + ours.encode()}
    assert locked.get("/api/health", headers=headers).status_code == 401


def test_a_parameter_that_only_ends_in_token_is_no_link(locked):
    assert locked.get("/api/health", params={"mytoken": TOKEN}).status_code == 401
    answer = locked.get("/api/health", params={"mytoken": "x"}, headers={"authorization": f"Bearer {TOKEN}"})
    assert 'unknown parameter "mytoken"' in answer.json()["error"]


def test_a_link_leads_to_this_server_only(locked):
    for path in ("//evil.example/", "/%5Cevil.example", "///evil.example"):
        answer = locked.get(f"http://localhost{path}?token={TOKEN}", follow_redirects=False)
        where = answer.headers["location"]
        assert where.startswith("/")
        assert not where.startswith(("//", "/\\"))


@pytest.mark.parametrize("path", ["/api/health", "/live", "/nowhere", "/api/predict", "/"])
def test_every_answer_carries_the_safe_headers(client, locked, path):
    for asked in (client, locked):
        headers = asked.get(path, follow_redirects=False).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example", "[::1"]
)
def test_another_host_name_is_refused(client, host):
    answer = client.get("/api/health", headers={"host": host})
    assert (answer.status_code, answer.json()["suggestions"]) == (421, [])


def test_names_and_addresses_of_ours_are_known():
    here, everywhere = (
        policy_of("127.0.0.1", 80, None, (), None),
        policy_of("0.0.0.0", 80, None, ("Kg.Lab",), None),
    )
    for host in ("localhost", "LOCALHOST:8765", "127.0.0.1:80", "[::1]:80", "localhost."):
        assert is_our_name(host, here)
    for host in ("192.168.0.4", "kg.lab"):
        assert not is_our_name(host, here)
        assert is_our_name(host, everywhere)
    assert not is_our_name("evil.example", everywhere)


def test_only_this_machine_needs_no_token():
    assert policy_of("127.0.0.1", 80, None, (), None).token is None
    assert policy_of("localhost", 80, None, (), None).token is None
    for host in ("0.0.0.0", "::", "192.168.0.4", "kg.lab"):
        assert not is_loopback(host)
        made = policy_of(host, 80, None, (), None)
        assert len(made.token) >= 32
        assert made.token != policy_of(host, 80, None, (), None).token
        assert made.token in url_of(host, 80, made.token)
    assert policy_of("0.0.0.0", 80, TOKEN, (), None).token == TOKEN
    with pytest.raises(UserError, match="--token: expected at least 8"):
        policy_of("127.0.0.1", 80, "short", (), None)
    assert url_of("::1", 80, None) == "http://[::1]:80/"


def test_a_client_that_floods_is_told_to_wait_and_others_are_not():
    now = [0.0]
    purses = Purses(rate=2.0, burst=3, clock=lambda: now[0])
    assert [purses.spend("a") for _ in range(5)] == [True, True, True, False, False]
    assert purses.spend("b")
    now[0] = 1.0
    assert [purses.spend("a") for _ in range(3)] == [True, True, False]
    for client in range(10_000):
        purses.spend(str(client))
    assert len(purses._purses) == 4096


def test_too_many_requests_are_answered_with_when_to_come_back(site_with, client_of, trained):
    slow = client_of(site_with(trained), replace(HERE, rate=0.001, burst=2))
    answers = [slow.get("/api/health") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] == "1"


def test_addresses_of_version_6_that_one_may_have_share_a_rate(site_with, trained):
    app = application(site_with(trained), replace(HERE, rate=0.001, burst=2))

    def asked_from(address: str) -> int:
        return TestClient(app, "http://localhost", client=(address, 50000)).get("/api/health").status_code

    assert [asked_from(f"2001:db8::{number}") for number in range(1, 4)] == [200, 200, 429]
    assert asked_from("2001:db8:0:1::1") == 200
    assert [asked_from(f"192.0.2.{number}") for number in range(3)] == [200, 200, 200]


def test_a_cookie_says_nothing_of_the_token():
    assert cookie_value(TOKEN) != cookie_value(TOKEN + "x")
    assert len(cookie_value(TOKEN)) == 64
    assert Policy(names=frozenset()).token is None
