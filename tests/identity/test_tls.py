"""Our own TLS, with certificates of clients, on every binding of one process. Spec: §7.1, §13.4."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import dragoman
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.client import ClientTls, GrpcClientSettings
from dragoman.errors import ConfigurationError, UnauthenticatedError
from dragoman.server import ServerTls
from dragoman.server.tls import make_context
from examples.process import AgentProcess, NotServing
from tests.grpc.certificates import Authority, Pair

SERVER_ROOT, CLIENT_ROOT = Authority("root of servers"), Authority("root of clients")
SERVER = SERVER_ROOT.sign("localhost", "127.0.0.1")
ANN = CLIENT_ROOT.sign("ann.example")

AGENT = """
from dragoman import Agent

agent = Agent("Whoami", description="Says who calls.")


@agent.task
async def who(ctx):
    return ctx.caller.id
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    (folder / "who.py").write_text(AGENT)
    (folder / "clients.pem").write_bytes(CLIENT_ROOT.root)
    SERVER.save(folder, "server")
    return folder


TLS = ("--tls-cert", "server.pem", "--tls-key", "server-key.pem")
MUTUAL = (*TLS, "--tls-client-ca", "clients.pem")
GRPC = (
    "--grpc-port",
    "0",
    "--grpc-cert",
    "server.pem",
    "--grpc-key",
    "server-key.pem",
    "--grpc-client-ca",
    "clients.pem",
)


@pytest.fixture(scope="module")
def mutual(folder: Path) -> Iterator[AgentProcess]:
    with AgentProcess.serving("who:agent", *MUTUAL, *GRPC, "--websocket", cwd=folder) as process:
        yield process


def context_of(pair: Pair | None, folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=SERVER_ROOT.root.decode())
    if pair is not None:
        context.load_cert_chain(*pair.save(folder, "client"))
    return context


WAYS = [(binding, version) for binding in ("JSONRPC", "HTTP+JSON", "GRPC") for version in ("1.0", "0.3")]


@pytest.mark.parametrize(("binding", "version"), [*WAYS, ("WebSocket", "1.0")])
@pytest.mark.req("AUTH-01", "AUTH-05", "SEC-16", "SEC-01", "DATA-32")
async def test_the_certificate_of_the_handshake_says_who_calls(
    mutual: AgentProcess, binding: str, version: str, tmp_path: Path
) -> None:
    context = context_of(ANN, tmp_path)
    spoken: Any = WebSocketBinding(tls=context) if binding == "WebSocket" else binding
    grpc = GrpcClientSettings(tls=ClientTls(roots=SERVER_ROOT.root, certificate=ANN.certificate, key=ANN.key))
    async with (
        httpx2.AsyncClient(verify=context) as http,
        dragoman.connect(mutual.url, http=http, bindings=[spoken], versions=[version], grpc=grpc) as client,
    ):
        assert (await client.run("hello")).text == "CN=ann.example"
        assert client.card.security_schemes["mutualTls"].mtls_security_scheme is not None
        assert client.card.supported_interfaces[0].url.startswith("https://")


@pytest.mark.parametrize("shown", ["none", "of another root"])
@pytest.mark.req("AUTH-01", "AUTH-05")
async def test_without_a_good_certificate_there_is_no_handshake(
    mutual: AgentProcess, shown: str, tmp_path: Path
) -> None:
    pair = None if shown == "none" else Authority("root of clients").sign("ann.example")
    async with httpx2.AsyncClient(verify=context_of(pair, tmp_path)) as http:
        with pytest.raises(httpx2.TransportError):
            await http.get(f"{mutual.url}/.well-known/agent-card.json")


@pytest.mark.req("SEC-02", "AUTH-02")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_of_tls_are_refused(mutual: AgentProcess, tmp_path: Path) -> None:
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = context_of(ANN, tmp_path)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")
        with (
            socket.create_connection(("127.0.0.1", mutual.port), timeout=5) as bare,
            pytest.raises(ssl.SSLError),
        ):
            context.wrap_socket(bare, server_hostname="localhost").close()


@pytest.mark.req("AUTH-01", "AUTH-05", "SEC-08", "SEC-17", "SEC-09")
async def test_a_key_protects_an_agent_quickly_and_the_log_is_for_programs(folder: Path, tmp_path: Path) -> None:
    process = AgentProcess.serving(
        "who:agent", *TLS, "--api-key-env", "ANN", "--log-format", "json", "--log-level", "info", cwd=folder
    )
    process._environment |= {"ANN": "key of ann"}
    with process:
        async with httpx2.AsyncClient(verify=context_of(None, tmp_path)) as http:
            async with dragoman.connect(process.url, http=http, headers={"X-API-Key": "key of ann"}) as client:
                assert (await client.run("hello")).text == "ANN"
            async with dragoman.connect(process.url, http=http) as client:
                with pytest.raises(UnauthenticatedError):
                    await client.run("hello")
        process.stop()
    lines = [json.loads(line) for line in process.output if line.startswith("{")]
    audit = [line["audit"] for line in lines if line["logger"] == "dragoman.audit"]

    assert ("ANN", "SendStreamingMessage", "ok") in [
        (a.get("caller"), a.get("operation"), a.get("result")) for a in audit
    ]
    assert "key of ann" not in "".join(process.output)


async def test_tokens_and_certificates_are_demanded_together(folder: Path, tmp_path: Path) -> None:
    options = ("--jwt-issuer", "https://id.example", "--jwt-audience", "agents", "--rate-limit", "5")
    with AgentProcess.serving("who:agent", *MUTUAL, *options, cwd=folder) as process:
        async with httpx2.AsyncClient(verify=context_of(ANN, tmp_path)) as http:
            card = (await http.get(f"{process.url}/.well-known/agent-card.json")).json()
            told = await http.post(process.url, json={}, headers={"Authorization": "Bearer x.y.z"})

    assert card["securityRequirements"] == [{"schemes": {"bearer": {}, "mutualTls": {}}}]
    assert told.status_code == 401


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--tls-cert", "server.pem"), "TLS needs --tls-cert and --tls-key"),
        (("--tls-client-ca", "clients.pem"), "TLS needs --tls-cert and --tls-key"),
        (("--jwt-issuer", "https://id.example"), "tokens need --jwt-issuer and --jwt-audience"),
        (("--api-key-env", "NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is empty or not set"),
        (("--jwt-issuer", "http://id.example", "--jwt-audience", "a"), "it is not https"),
        (("--tls-cert", "clients.pem", "--tls-key", "server-key.pem"), "are no good"),
    ],
)
def test_options_that_cannot_work_are_refused_at_once(folder: Path, options: tuple[str, ...], says: str) -> None:
    with pytest.raises(NotServing) as raised, AgentProcess.serving("who:agent", *options, cwd=folder):
        pass

    assert says in str(raised.value)
    assert "Traceback" not in str(raised.value)


@pytest.mark.req("AUTH-01")
def test_credentials_in_the_clear_are_warned_of(folder: Path) -> None:
    options = ("--public-url", "http://agent.example:8080", "--api-key-env", "PATH")
    with AgentProcess.serving("who:agent", *options, cwd=folder) as process:
        assert process.stop() == 0

    assert "credentials are sent to http://agent.example:8080 unencrypted" in "".join(process.output)


@pytest.mark.parametrize("broken", [b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", SERVER.key])
def test_certificates_that_are_no_good_are_refused(broken: bytes) -> None:
    with pytest.raises(ConfigurationError):
        make_context(ServerTls(certificate=broken, key=SERVER.key))
    with pytest.raises(ConfigurationError):
        make_context(ServerTls(certificate=SERVER.certificate, key=ANN.key))
    assert "PRIVATE" not in repr(ServerTls(certificate=SERVER.certificate, key=SERVER.key))
