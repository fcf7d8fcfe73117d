"""Half-open connections end by themselves, and one address cannot take all there are."""

import asyncio

import pytest
import uvicorn
from uvicorn.server import ServerState

from autosf.app.web import connections
from autosf.app.web.connections import Connection
from autosf.app.web.guard import source_of
from autosf.app.web.server import configured

SECONDS = 0.3
WHOLE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(autouse=True)
def little(monkeypatch):
    """Little time and few connections, so that the test need not wait either."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", SECONDS)
    monkeypatch.setattr(connections, "MOST_OF_HERE", 3)


async def answers(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def tried(talk) -> None:
    """Let somebody talk to a server; `talk` is given what opens a connection."""

    async def run():
        config, state = uvicorn.Config(answers, lifespan="off"), ServerState()
        made = asyncio.get_running_loop().create_server(lambda: Connection(config, state, {}), "127.0.0.1", 0)
        async with await made as server:
            port = server.sockets[0].getsockname()[1]
            await asyncio.wait_for(talk(lambda: asyncio.open_connection("127.0.0.1", port)), 30)

    asyncio.run(run())


async def is_ended(reader) -> bool:
    """Whether the server ends the connection, rather than wait for what never comes."""
    try:
        return not (await asyncio.wait_for(reader.read(), 10 * SECONDS)).partition(b"ok")[2]
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nX: ",
        WHOLE + b"GET / HT",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
    ],
)
def test_a_request_that_does_not_end_ends_its_connection(begun):
    async def talk(connect):
        reader, writer = await connect()
        writer.write(begun)
        await asyncio.sleep(SECONDS / 2)
        writer.write(begun[-1:])  # more of it wins no time
        assert await is_ended(reader)
        writer.close()

    tried(talk)


def test_whole_requests_may_come_as_slowly_as_one_likes():
    async def talk(connect):
        reader, writer = await connect()
        for _ in range(2):
            writer.write(WHOLE)
            assert b"200" in await reader.readuntil(b"ok")
            await asyncio.sleep(2 * SECONDS)
        writer.close()

    tried(talk)


def test_one_address_has_its_share_of_connections():
    async def talk(connect):
        first = [await connect() for _ in range(3)]
        reader, late = await connect()
        assert await asyncio.wait_for(reader.read(), SECONDS / 2) == b""
        first[0][1].write(WHOLE)
        assert b"200" in await first[0][0].readuntil(b"ok")
        for _, writer in first:
            writer.close()
        late.close()

    tried(talk)


def test_the_server_of_strangers_keeps_to_it():
    assert configured(answers, to_strangers=True).http is Connection
    assert configured(answers, to_strangers=False).http == "auto"


def test_an_address_of_version_6_counts_with_its_neighbours():
    assert source_of("192.0.2.1") != source_of("192.0.2.2")
    assert source_of("2001:db8::1") == source_of("2001:db8::2:3") != source_of("2001:db8:0:1::1")
    assert source_of("fe80::1%eth0") == source_of("fe80::2%eth0")
    assert source_of("") == ""
