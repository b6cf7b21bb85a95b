"""Clients that show a certificate, on every binding over real TLS. Spec: AUTH-01, AUTH-03, A2ACLI_AUTH_009."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from cryptography.hazmat.primitives import serialization

import dragoman
from dragoman import App, Limits
from dragoman.auth import ClientCertificate
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.errors import ClientError, ConfigurationError, ConnectError
from dragoman.model import AgentInterface, Message
from dragoman.server import GrpcServerSettings, ServerTls
from dragoman.server.serving import listen, websocket_options
from tests.grpc.agents import make_echo
from tests.grpc.certificates import Authority, Pair
from tests.grpc.raw import grpc_served


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("root of the tests")


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.sign("ann")


def encrypted(pair: Pair, password: str) -> bytes:
    key = serialization.load_pem_private_key(pair.key, None)
    form = serialization.PrivateFormat.PKCS8
    how = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, form, how)


class Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@pytest.fixture
async def url(authority: Authority, tmp_path: Path) -> AsyncIterator[str]:
    """An agent over HTTPS and WebSocket that takes nobody without a certificate."""
    served = authority.sign("localhost", "127.0.0.1")
    certificate, key = served.save(tmp_path, "server")
    roots = tmp_path / "roots.pem"
    roots.write_bytes(authority.root)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listen("127.0.0.1", 0))
        base = f"https://127.0.0.1:{listening.getsockname()[1]}"
        app = App(
            make_echo(), public_url=base, bindings=[WebSocketBinding()], limits=Limits(shutdown_grace=0.2, lease=2)
        )
        config = uvicorn.Config(
            app,
            log_config=None,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            ssl_ca_certs=str(roots),
            ssl_cert_reqs=ssl.CERT_REQUIRED,
            timeout_graceful_shutdown=1,
            **websocket_options(app),
        )
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        async with asyncio.timeout(10):
            await server.up.wait()
        yield base
        server.should_exit = True
        await serving


def shown(authority: Authority, pair: Pair, **more: Any) -> ClientCertificate:
    return ClientCertificate(**({"certificate": pair.certificate, "key": pair.key, "roots": authority.root} | more))


@pytest.mark.req("AUTH-01", "AUTH-03", "A2ACLI_AUTH_009")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON", "WebSocket"])
async def test_a_certificate_is_shown_for_the_card_and_for_every_call(
    url: str, authority: Authority, pair: Pair, binding: str
) -> None:
    spoken = WebSocketBinding() if binding == "WebSocket" else binding

    async with dragoman.connect(url, bindings=[spoken], credentials=shown(authority, pair)) as client:
        assert isinstance(await client.send("reply"), Message)


@pytest.mark.req("AUTH-01", "AUTH-03", "A2ACLI_AUTH_009")
async def test_without_the_right_certificate_there_is_no_connection(url: str, authority: Authority) -> None:
    stranger = Authority("somebody else")
    for credentials in (shown(authority, stranger.sign("ann")), None):
        with pytest.raises(ClientError):
            await dragoman.connect(url, credentials=credentials, timeout=5).open()


@pytest.mark.req("AUTH-03")
async def test_the_server_is_verified_all_the_same(url: str, pair: Pair) -> None:
    with pytest.raises(ConnectError, match="TLS"):
        await dragoman.connect(url, credentials=shown(Authority("another root"), pair)).open()


@pytest.mark.req("AUTH-01", "GRPC-01", "A2ACLI_AUTH_009")
@pytest.mark.parametrize("password", ["", "pass phrase"])
async def test_a_certificate_is_shown_over_grpc(authority: Authority, pair: Pair, password: str) -> None:
    served = authority.sign("localhost", "127.0.0.1")
    tls = ServerTls(certificate=served.certificate, key=served.key, client_roots=authority.root)
    key = encrypted(pair, password) if password else pair.key
    async with grpc_served(make_echo(), GrpcServerSettings(port=0, tls=tls)) as server:
        entry = AgentInterface(url=f"127.0.0.1:{server.port}", protocol_binding="GRPC", protocol_version="1.0")
        credentials = shown(authority, pair, key=key, password=password)
        async with dragoman.connect(entry, credentials=credentials, timeout=5) as client:
            assert isinstance(await client.send("reply"), Message)


@pytest.mark.req("A2ACLI_AUTH_009")
async def test_an_encrypted_key_needs_its_password(url: str, authority: Authority, pair: Pair, tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(encrypted(pair, "right"))

    async with dragoman.connect(
        url, credentials=shown(authority, pair, certificate=certificate, key=key, password="right")
    ) as client:
        await client.send("reply")
    for password in ("", "wrong"):
        with pytest.raises(ConfigurationError, match="password"):
            await dragoman.connect(url, credentials=shown(authority, pair, key=key, password=password)).open()


@pytest.mark.req("A2ACLI_AUTH_009")
@pytest.mark.parametrize("certificate", [b"nothing", "/nowhere/at/all.pem"])
async def test_a_certificate_that_is_none_is_a_mistake(authority: Authority, pair: Pair, certificate: Any) -> None:
    with pytest.raises(ConfigurationError, match="certificate"):
        await dragoman.connect(
            "https://127.0.0.1:1", credentials=shown(authority, pair, certificate=certificate)
        ).open()


def test_a_certificate_and_a_client_of_ones_own_exclude_each_other(authority: Authority, pair: Pair) -> None:
    import httpx2

    with pytest.raises(ConfigurationError, match="exclude"):
        dragoman.connect("https://a.example", http=httpx2.AsyncClient(), credentials=shown(authority, pair))
