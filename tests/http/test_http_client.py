"""The HTTP client: one class for each way to fail, and limits."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator

import httpx2
import pytest

from dragoman.errors import (
    ConnectError,
    ConnectionLostError,
    DragomanError,
    InvalidAgentResponseError,
    OutboundUrlError,
    RequestTimeoutError,
)
from dragoman.http.client import HttpClient, default_tls, resolve
from tests.http.peer import BOUND, Peer, free_url, peer, plain, raw, reset, silence, stream


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


async def test_an_answer_comes_with_status_headers_and_body(server: Peer, http: HttpClient) -> None:
    server.on("POST", "/a", plain(418, b"tea", x_pot="yes"))

    answer = await http.fetch("POST", server.url + "/a?b=1", headers={"x-cup": "1"}, body=b"leaves", timeout=BOUND)

    assert (answer.status, answer.headers["x-pot"], answer.body) == (418, "yes", b"tea")
    received = server.received[0]
    assert (received.target, received.headers["x-cup"], received.body) == ("/a?b=1", "1", b"leaves")


async def test_a_connection_is_used_again(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", plain(200, b"{}"))

    for _ in range(3):
        await http.fetch("GET", server.url + "/", timeout=BOUND)

    assert server.connections == 1


@pytest.mark.req("B157")
async def test_a_refused_connection_is_a_connect_error_with_address_and_cause(http: HttpClient) -> None:
    url = free_url()

    with pytest.raises(ConnectError) as caught:
        await http.fetch("GET", url + "/x?token=secret", timeout=BOUND)

    assert caught.value.url == url + "/x"
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is not None


@pytest.mark.req("B157")
async def test_an_unknown_name_is_a_connect_error(http: HttpClient) -> None:
    with pytest.raises(ConnectError):
        await http.fetch("GET", "http://nowhere.invalid/", timeout=BOUND)


@pytest.mark.req("B157")
async def test_a_failed_tls_handshake_is_a_connect_error(http: HttpClient) -> None:
    async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(no_tls, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ConnectError, match="TLS failed"):
            await http.fetch("GET", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", timeout=BOUND)


@pytest.mark.req("B157")
@pytest.mark.parametrize("when", ["before the head", "within the body"])
async def test_an_alert_of_tls_after_the_handshake_is_a_lost_connection(when: str) -> None:
    alert = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")

    async def body() -> AsyncIterator[bytes]:
        yield b"a piece"
        raise alert

    def answer(request: httpx2.Request) -> httpx2.Response:
        if when == "before the head":
            raise alert
        return httpx2.Response(200, content=body())

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        with pytest.raises(ConnectionLostError, match="TLS failed"):
            await HttpClient(client).fetch("POST", "https://agent.example/", timeout=BOUND)


async def test_silence_is_a_timeout_that_names_its_seconds(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", silence)

    with pytest.raises(RequestTimeoutError, match=r"longer than 0\.05 s"):
        await http.fetch("GET", server.url + "/", timeout=0.05)


async def test_a_slow_body_is_inside_the_timeout_of_the_call(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", stream(b"a", b"b", end="stay"))

    with pytest.raises(RequestTimeoutError):
        await http.fetch("GET", server.url + "/", timeout=0.05)


@pytest.mark.req("B157")
@pytest.mark.parametrize(
    "answer",
    [
        reset,
        raw(b""),
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"),
        raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nha"),
        raw(b"this is not HTTP\r\n\r\n"),
        stream(b"abc", end="reset"),
    ],
    ids=["reset", "closed", "short body", "short chunk", "not HTTP", "reset in the body"],
)
async def test_a_broken_connection_is_a_connection_lost_error(server: Peer, http: HttpClient, answer) -> None:
    server.on("GET", "/", answer)

    with pytest.raises(ConnectionLostError) as caught:
        await http.fetch("GET", server.url + "/", timeout=BOUND)

    assert caught.value.url == server.url + "/"
    assert caught.value.__cause__ is not None


@pytest.mark.req("SEC-03")
@pytest.mark.parametrize(
    "answer",
    [
        plain(200, b"x" * 2000),
        stream(b"x" * 600, b"x" * 600),
        plain(200, gzip.compress(b"x" * 100_000), content_encoding="gzip"),
        raw(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000),
    ],
    ids=["declared", "chunked", "inflated", "until close"],
)
async def test_a_body_beyond_the_limit_is_not_read(server: Peer, http: HttpClient, answer) -> None:
    server.on("GET", "/", answer)

    with pytest.raises(InvalidAgentResponseError, match="larger than 1000 bytes"):
        await http.fetch("GET", server.url + "/", timeout=BOUND, max_bytes=1000)


async def test_a_body_that_is_not_encoded_as_it_says_is_an_invalid_response(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", plain(200, b"no gzip", content_encoding="gzip"))

    with pytest.raises(InvalidAgentResponseError):
        await http.fetch("GET", server.url + "/", timeout=BOUND)


async def test_redirects_are_not_followed(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", plain(302, b"", location="/elsewhere"))

    answer = await http.fetch("GET", server.url + "/", timeout=BOUND)

    assert (answer.status, len(server.received)) == (302, 1)


async def test_an_open_answer_gives_bytes_as_they_come(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", stream(b"one", b"two"))

    opened = await http.open("GET", server.url + "/", timeout=BOUND, idle=BOUND)
    chunks = b""
    while chunk := await opened.next_chunk():
        chunks += chunk
    await opened.aclose()

    assert (opened.status, chunks) == (200, b"onetwo")


async def test_an_encoded_open_answer_is_decoded(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", stream(gzip.compress(b"one"), content_encoding="gzip"))

    opened = await http.open("GET", server.url + "/", timeout=BOUND, idle=BOUND)

    assert await opened.next_chunk() == b"one"
    await opened.aclose()


async def test_a_head_that_does_not_come_is_a_timeout(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", silence)

    with pytest.raises(RequestTimeoutError, match=r"not answered within 0\.05 s"):
        await http.open("GET", server.url + "/", timeout=0.05)


async def test_a_stream_that_goes_silent_is_a_timeout(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", stream(b"one", end="stay"))
    opened = await http.open("GET", server.url + "/", timeout=BOUND, idle=0.05)
    assert await opened.next_chunk() == b"one"

    with pytest.raises(RequestTimeoutError):
        await opened.next_chunk()
    await opened.aclose()


async def test_closing_an_open_answer_hangs_up(server: Peer, http: HttpClient) -> None:
    server.on("GET", "/", stream(b"one", end="stay"))
    opened = await http.open("GET", server.url + "/", timeout=BOUND)
    await opened.next_chunk()

    await opened.aclose()
    await opened.aclose()

    await asyncio.wait_for(server.hung_up.wait(), BOUND)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1/\udcff"])
async def test_an_address_that_cannot_be_called_is_refused(http: HttpClient, url: str) -> None:
    with pytest.raises(OutboundUrlError):
        await http.fetch("GET", url, timeout=BOUND)


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
async def test_what_can_be_no_name_is_one_that_is_not_found(host: str) -> None:
    with pytest.raises(OSError, match="no such name"):
        await resolve(host, 80)


@pytest.mark.req("AMB-71", "SEC-15")
async def test_only_public_addresses_are_called_when_private_ones_are_not_allowed(server: Peer) -> None:
    http = HttpClient(allow_private=False)

    with pytest.raises(OutboundUrlError):
        await http.fetch("GET", server.url + "/", timeout=BOUND)

    assert server.connections == 0
    await http.aclose()


@pytest.mark.req("AMB-71")
async def test_the_address_that_was_checked_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["8.8.8.8"]

    asked: list[str] = []
    loop = asyncio.get_running_loop()

    async def refuse(*args: object, **kwargs: object) -> list[object]:
        asked.append(str(args[0] if args else kwargs["host"]))
        raise OSError(113, "No route to host")

    monkeypatch.setattr(loop, "getaddrinfo", refuse)
    monkeypatch.setattr(loop, "create_connection", lambda *a, **k: refuse(a[1] if len(a) > 1 else k.get("host")))
    http = HttpClient(allow_private=False, resolver=resolve)

    with pytest.raises(DragomanError):
        await http.fetch("GET", "http://name.example/", timeout=BOUND)

    assert set(asked) == {"8.8.8.8"}
    await http.aclose()


async def test_an_unknown_name_is_a_connect_error_when_names_are_resolved_here() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError(-2, "Name or service not known")

    http = HttpClient(allow_private=False, resolver=resolve)

    with pytest.raises(ConnectError, match="Name or service not known"):
        await http.fetch("GET", "http://name.example/", timeout=BOUND)
    await http.aclose()


def test_tls_below_1_2_is_off() -> None:
    assert default_tls().minimum_version >= ssl.TLSVersion.TLSv1_2
