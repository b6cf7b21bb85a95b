"""``dragoman server --proxy``."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator

import pytest

import dragoman
from dragoman import Task
from examples.process import DRAGOMAN, AgentProcess
from tests.bindings.parts import RecordingOperations
from tests.conformance.quick_server import quick_serving
from tests.proxy.chain import BOUND, ScriptedApp

BEARER = {
    "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
    "securityRequirements": [{"schemes": {"token": {"list": []}}}],
}
KEY = {
    "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "query", "name": "key"}}},
    "securityRequirements": [{"schemes": {"key": {"list": []}}}],
}


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with AgentProcess([DRAGOMAN, "server", "--echo", "--quiet"]) as process:
        yield process.url


def proxy_of(reference: str, *options: str, **environment: str) -> AgentProcess:
    command = [DRAGOMAN, "server", "--proxy", *([reference] if reference else []), *options]
    return AgentProcess(command, environment=environment)


@pytest.mark.req("A2ACLI_DEMO_SERVER_001", "CARD-06")
async def test_an_agent_is_served_again_by_every_binding(echo: str) -> None:
    with proxy_of(echo, "--grpc-port", "0", "--name", "Front") as process:
        answers = []
        for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
            async with dragoman.connect(process.url, bindings=(binding,)) as client, asyncio.timeout(BOUND):
                answers.append(await client.send("!stream 3 1ms"))
                name = client.card.name
        process.stop()

    texts = ["".join(part.text or "" for part in task.artifacts[0].parts) for task in answers if isinstance(task, Task)]
    assert texts == ["chunk 1 of 3\nchunk 2 of 3\nchunk 3 of 3\n"] * 3
    assert name == "Front"
    assert sum("SendMessage" in line and " ok " in line for line in process.output) == 3


@pytest.mark.req("A2ACLI_DEMO_SERVER_001")
async def test_the_agent_may_be_named_as_for_every_command(echo: str) -> None:
    with proxy_of("", "-a", echo) as process:
        async with dragoman.connect(process.url) as client:
            answer = await client.send("hello")

    assert isinstance(answer, Task)


@pytest.mark.req("A2ACLI_AUTH_001", "SEC-09")
@pytest.mark.parametrize(("security", "option"), [(BEARER, "--bearer"), (KEY, "--api-key")])
async def test_credentials_go_to_the_agent_as_its_card_says_and_are_not_logged(
    security: dict[str, object], option: str
) -> None:
    operations = RecordingOperations()
    async with quick_serving(ScriptedApp(operations, **security)) as url:
        process = await asyncio.to_thread(proxy_of(url, option, "s3cret", "--svc-param", "x-team:blue").__enter__)
        try:
            async with dragoman.connect(process.url) as client:
                kept = client.card.security_schemes
                await client.send("hello", headers={"Authorization": "Bearer of the caller"})
        finally:
            await asyncio.to_thread(process.stop)

    given = operations.context.parameters
    assert given["x-team"] == "blue"
    assert given.get("authorization") == ("Bearer s3cret" if option == "--bearer" else None)
    assert kept
    assert "s3cret" not in "".join(process.output)


async def test_headers_of_callers_are_forwarded_when_they_are_named() -> None:
    operations = RecordingOperations()
    async with quick_serving(ScriptedApp(operations)) as url:
        process = await asyncio.to_thread(proxy_of(url, "--forward-header", "Authorization").__enter__)
        try:
            async with dragoman.connect(process.url) as client:
                await client.send("hello", headers={"Authorization": "Bearer of the caller"})
        finally:
            await asyncio.to_thread(process.stop)

    assert operations.context.parameters["authorization"] == "Bearer of the caller"


@pytest.mark.req("A2ACLI_EXIT_001")
@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--proxy", "http://127.0.0.1:9"], 3, "A2ACLI_ERR_UNREACHABLE"),
        (["--proxy", "http://127.0.0.1:9", "--echo"], 2, "A2ACLI_ERR_USAGE"),
        (["--proxy", "http://127.0.0.1:9", "--no-streaming"], 2, "A2ACLI_ERR_USAGE"),
        (["--proxy", "http://127.0.0.1:9", "--forward-header", "no name"], 2, "A2ACLI_ERR_USAGE"),
        (["--proxy", "-e", "http://127.0.0.1:9", "--transport", "JSONRPC"], 2, "A2ACLI_ERR_USAGE"),
    ],
)
def test_what_cannot_be_served_is_said_at_once(words: list[str], status: int, code: str) -> None:
    done = subprocess.run(
        [DRAGOMAN, "server", *words, "--port", "0", "-o", "json"], capture_output=True, text=True, timeout=30
    )

    assert done.returncode == status
    assert json.loads(done.stdout)["error"]["code"] == code


def test_a_header_of_the_connection_is_refused(echo: str) -> None:
    command = [DRAGOMAN, "server", "--proxy", echo, "--forward-header", "Host", "--port", "0"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=30)

    assert done.returncode == 2
    assert "host belongs to the connection" in done.stderr
