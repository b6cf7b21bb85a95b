"""TLS and mutual TLS, for server and client, from files and from memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Caller, Client
from dragoman.client import ClientTls, GrpcClientSettings
from dragoman.errors import ConfigurationError, ConnectError, UnauthenticatedError
from dragoman.model import AgentInterface
from dragoman.server import GrpcServerSettings, ServerTls
from tests.grpc.agents import make_echo
from tests.grpc.certificates import Authority, Pair
from tests.grpc.raw import grpc_served


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("root of the tests")


@pytest.fixture(scope="module")
def server_pair(authority: Authority) -> Pair:
    return authority.sign("localhost", "127.0.0.1")


@asynccontextmanager
async def connected(url: str, tls: ClientTls | bool | None, **more: Any) -> AsyncIterator[Client]:
    entry = AgentInterface(url=url, protocol_binding="GRPC", protocol_version="1.0")
    async with dragoman.connect(entry, grpc=GrpcClientSettings(tls=tls), timeout=5, **more) as client:
        yield client


def serving_by(pair: Pair, **more: Any) -> GrpcServerSettings:
    return GrpcServerSettings(port=0, tls=ServerTls(certificate=pair.certificate, key=pair.key, **more))


@pytest.mark.req("GRPC-01", "SEC-01", "SEC-02", "AMB-77")
async def test_a_server_with_a_certificate_is_called_by_tls(authority: Authority, server_pair: Pair) -> None:
    async with grpc_served(make_echo(), serving_by(server_pair)) as server:
        for url in (f"127.0.0.1:{server.port}", f"https://localhost:{server.port}"):
            async with connected(url, ClientTls(roots=authority.root)) as client:
                assert (await client.send("reply")).parts[0].text == "direct"


@pytest.mark.req("GRPC-01")
async def test_certificates_may_be_files(authority: Authority, server_pair: Pair, tmp_path: Path) -> None:
    certificate, key = server_pair.save(tmp_path, "server")
    (tmp_path / "root.pem").write_bytes(authority.root)
    settings = GrpcServerSettings(port=0, tls=ServerTls(certificate=str(certificate), key=key))

    async with (
        grpc_served(make_echo(), settings) as server,
        connected(f"127.0.0.1:{server.port}", ClientTls(roots=tmp_path / "root.pem")) as client,
    ):
        assert (await client.send("reply")).parts[0].text == "direct"


@pytest.mark.req("SEC-02")
@pytest.mark.parametrize("tls", [None, True])
async def test_a_certificate_of_nobody_known_is_refused(server_pair: Pair, tls: bool | None) -> None:
    async with (
        grpc_served(make_echo(), serving_by(server_pair)) as server,
        connected(f"https://localhost:{server.port}", tls) as client,
    ):
        with pytest.raises(ConnectError):
            await client.send("reply")


@pytest.mark.req("SEC-02")
async def test_a_certificate_for_another_name_is_refused_unless_that_is_the_name_to_expect(
    authority: Authority,
) -> None:
    async with grpc_served(make_echo(), serving_by(authority.sign("agent.example"))) as server:
        url = f"127.0.0.1:{server.port}"
        async with connected(url, ClientTls(roots=authority.root)) as client:
            with pytest.raises(ConnectError):
                await client.send("reply")
        async with connected(url, ClientTls(roots=authority.root, server_name="agent.example")) as client:
            assert await client.send("reply")


@pytest.mark.req("SEC-01", "AUTH-05")
async def test_by_mutual_tls_both_show_who_they_are(authority: Authority, server_pair: Pair) -> None:
    ours, foreign = authority.sign("caller.example"), Authority("another root").sign("caller.example")
    shown: list[Any] = []

    async def identify(scope: Any) -> Caller:
        shown.append(scope)
        chain = scope["extensions"]["tls"]["client_cert_chain"]
        if not chain:
            raise UnauthenticatedError
        return Caller(id="caller.example")

    settings = serving_by(server_pair, client_roots=authority.root)
    async with grpc_served(make_echo(), settings, identify=identify) as server:
        url = f"127.0.0.1:{server.port}"
        tls = ClientTls(roots=authority.root, certificate=ours.certificate, key=ours.key)
        async with connected(url, tls) as client:
            assert await client.send("reply")
        nobody = ClientTls(roots=authority.root)
        stranger = ClientTls(roots=authority.root, certificate=foreign.certificate, key=foreign.key)
        for other in (nobody, stranger):
            async with connected(url, other) as client:
                with pytest.raises(ConnectError):
                    await client.send("reply")

    assert [scope["scheme"] for scope in shown] == ["https"]
    assert shown[0]["extensions"]["tls"]["client_cert_chain"] == [ours.certificate.decode()]


@pytest.mark.req("SEC-01")
async def test_certificates_of_clients_may_be_optional(authority: Authority, server_pair: Pair) -> None:
    settings = serving_by(server_pair, client_roots=authority.root, require_client=False)

    async with (
        grpc_served(make_echo(), settings) as server,
        connected(f"127.0.0.1:{server.port}", ClientTls(roots=authority.root)) as client,
    ):
        assert await client.send("reply")


async def test_plaintext_to_a_server_with_tls_is_a_connect_error(server_pair: Pair) -> None:
    async with (
        grpc_served(make_echo(), serving_by(server_pair)) as server,
        connected(f"http://127.0.0.1:{server.port}", None) as client,
    ):
        with pytest.raises(ConnectError):
            await client.send("reply")


@pytest.mark.req("SEC-09")
def test_keys_are_not_shown(server_pair: Pair) -> None:
    server = ServerTls(certificate=server_pair.certificate, key=server_pair.key)
    client = ClientTls(certificate=server_pair.certificate, key=server_pair.key)

    for shown in (
        repr(server),
        repr(client),
        repr(GrpcServerSettings(tls=server)),
        repr(GrpcClientSettings(tls=client)),
    ):
        assert "PRIVATE" not in shown


async def test_certificates_that_are_none_are_configuration_errors(server_pair: Pair, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs its key"):
        ClientTls(certificate=b"x")
    for wrong in (b"no pem", tmp_path / "missing.pem"):
        settings = GrpcServerSettings(port=0, tls=ServerTls(certificate=wrong, key=server_pair.key))
        with pytest.raises(ConfigurationError, match="the gRPC certificate"):
            async with grpc_served(make_echo(), settings):
                pass
    broken = ServerTls(certificate=b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", key=server_pair.key)
    with pytest.raises(ConfigurationError):
        async with grpc_served(make_echo(), GrpcServerSettings(port=0, tls=broken)):
            pass
    with pytest.raises(ConfigurationError, match="the roots to trust"):
        async with connected("agent.example:1", ClientTls(roots=tmp_path / "missing.pem")):
            pass
