"""One script of operations, run over every binding on a server of its own: everything that comes back is equal.

Over protocol 0.3 the same script is run by a client that speaks it. Wrong fields are named there as they were written,
which differs with the form of the message, so that of invalid parameters only the error itself is compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman import RESUMABLE_STREAMS, Agent, App, Client, Fail, Part, Reject, Reply
from dragoman.errors import A2AError
from dragoman.model import (
    CANCEL_TASK,
    CREATE_TASK_PUSH_NOTIFICATION_CONFIG,
    DELETE_TASK_PUSH_NOTIFICATION_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    GET_TASK_PUSH_NOTIFICATION_CONFIG,
    LIST_TASK_PUSH_NOTIFICATION_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    Operation,
    decode_value,
    encode_json,
)
from dragoman.ports.operations import CallContext
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving

MIB = 1024 * 1024
WORDS = 'Grüße, 你好, 👩‍🚀, e\u0301, \u2028\u2029\u0085, \x00 \\ " </script>'
DATA = {
    "null": None,
    "yes": True,
    "int": 2**53 - 1,
    "negative": -(2**53) + 1,
    "float": 0.1,
    "tiny": 5e-324,
    "text": WORDS,
    "list": [None, [], {}, "", 0],
}


class Counting:
    """A clock that stands still, and ids that count."""

    def __init__(self) -> None:
        self._count = 0

    def now_ms(self) -> int:
        return 1_790_000_000_123

    def new_id(self) -> str:
        self._count += 1
        return f"id-{self._count}"


def make_agent() -> Agent:
    everything = ("*/*",)
    agent = Agent(
        "Script", description="Does what it is told.", input_modes=("text/plain", "application/json", "image/*"),
        output_modes=everything, extensions=[RESUMABLE_STREAMS],
    )  # fmt: skip

    @agent.message
    async def act(ctx):
        if ctx.text == "reply":
            return Reply([Part(text=WORDS), Part(data=None), Part(raw=b"\x00\xff", filename="ü.bin")], metadata=DATA)
        await ctx.update(f"told to {ctx.text}", metadata={"step": 1})
        if ctx.text == "fail":
            raise Fail(WORDS)
        if ctx.text == "reject":
            raise Reject("no")
        if ctx.text == "crash":
            raise KeyError("nobody may read this")
        if ctx.text == "ask":
            return f"You said {(await ctx.ask('What?')).text}"
        for number in range(3):
            await ctx.artifact(f"{number} ", artifact_id="pieces", append=number > 0, last_chunk=number == 2)
        return [*(Part(data=value) for value in (DATA, None, 0, False, "", [], {})), *ctx.message.parts]

    return agent


@asynccontextmanager
async def connected(binding: str, version: str) -> AsyncIterator[Client]:
    """A client of a new server, that speaks one version."""
    app = App(make_agent(), clock=Counting(), max_body_bytes=8 * MIB)
    async with AsyncExitStack() as stack:
        target: Any = app
        if binding == "in process":
            await stack.enter_async_context(app)
        else:
            target = await stack.enter_async_context(serving(app, grpc=GrpcServerSettings(port=0)))
        bindings = ("JSONRPC",) if binding == "in process" else (binding,)
        yield await stack.enter_async_context(
            dragoman.connect(target, bindings=bindings, versions=(version,), check_capabilities=False)
        )


def told(error: A2AError, version: str) -> list[Any]:
    """All of an error that its receiver may act on."""
    violations = sorted((v.field, v.description) for v in error.violations) if version == "1.0" else []
    return [type(error).__name__, error.message, error.reason, violations, error.metadata, error.retry_after]


class Script:
    """What was done and what came of it, in order."""

    def __init__(self, client: Client, version: str) -> None:
        self._client = client
        self._version = version
        self.seen: list[Any] = []
        self.token = ""

    async def do(self, op: Operation, request: dict[str, Any], **beside: Any) -> Any:
        """One operation; its outcome as JSON data joins ``seen``."""
        context = CallContext(extensions=(RESUMABLE_STREAMS,), **beside)
        try:
            outcome = await self._outcome(op, decode_value(op.request, request), context)
        except A2AError as error:
            outcome = told(error, self._version)
        self.seen.append((op.name, outcome))
        return outcome

    async def _outcome(self, op: Operation, request: msgspec.Struct, context: CallContext) -> Any:
        if not op.streaming:
            answer = msgspec.json.decode(encode_json(await self._client.operations.call(op, request, context)))
            self.token = answer.get("nextPageToken", "")
            return {**answer, "nextPageToken": bool(self.token)}  # sealed with the key of each server
        async with await self._client.operations.stream(op, request, context) as stream:
            return [(event.number, msgspec.json.decode(event.json)) async for event in stream]


def message(text: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request of SendMessage."""
    said = {"messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}, *parts], **more}
    return {"message": said}


async def run_script(client: Client, version: str) -> list[Any]:
    script = Script(client, version)
    do = script.do
    for text in ("reply", "fail", "reject", "crash"):
        await do(SEND_MESSAGE, message(text))
    await do(SEND_STREAMING_MESSAGE, message("reply"))
    files = {"raw": "/" * (MIB * 4 // 3 // 4 * 4), "mediaType": "image/png"}, {"url": "https://x.example/ü?a=1&b=2"}
    big = await do(SEND_MESSAGE, message("work", {"data": DATA}, {"text": "x" * MIB}, *files, metadata=DATA))
    await do(SEND_STREAMING_MESSAGE, message("work", contextId="user 42/ä"))
    asked = (await do(SEND_MESSAGE, message("ask") | {"configuration": {"historyLength": 1}}))["task"]["id"]
    await do(SUBSCRIBE_TO_TASK, {"id": big["task"]["id"]})
    await do(SUBSCRIBE_TO_TASK, {"id": big["task"]["id"]}, last_event_id=2)
    await do(SEND_STREAMING_MESSAGE, message("an answer", taskId=asked))
    for length in (None, 0, 1):
        await do(GET_TASK, {"id": asked, "historyLength": length})
    for request in ({}, {"pageSize": 2, "includeArtifacts": True}, {"status": "TASK_STATE_FAILED", "historyLength": 1}):
        await do(LIST_TASKS, request)
    await do(LIST_TASKS, {"pageSize": 2})
    await do(LIST_TASKS, {"pageSize": 2, "pageToken": script.token})
    for request in ({"pageSize": 0}, {"pageSize": 101, "historyLength": -1}, {"pageToken": "garbage"}):
        await do(LIST_TASKS, request)
    await run_refusals(do, asked)
    return script.seen


async def run_refusals(do: Any, over: str) -> None:
    waiting = (await do(SEND_MESSAGE, message("ask")))["task"]["id"]
    await do(SEND_MESSAGE, message("more", taskId=waiting, contextId="another"))
    await do(CANCEL_TASK, {"id": waiting, "metadata": DATA})
    for task_id in (waiting, over, "nobody's"):
        await do(CANCEL_TASK, {"id": task_id})
    for task_id in (over, "nobody's"):
        await do(SUBSCRIBE_TO_TASK, {"id": task_id})
        await do(SEND_MESSAGE, message("more", taskId=task_id))
    await do(GET_TASK, {"id": "nobody's"})
    await do(SEND_MESSAGE, message("work", {"text": "x", "mediaType": "audio/ogg"}))
    await do(SEND_MESSAGE, {"message": {"messageId": "", "role": "ROLE_AGENT", "parts": [{}]}})
    await do(SEND_STREAMING_MESSAGE, {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}})
    await do(GET_TASK, {"id": over}, version="9.9")
    await do(GET_TASK, {"id": over}, version="")
    webhook = {"taskId": over, "id": "c", "url": "https://hook.example"}
    await do(CREATE_TASK_PUSH_NOTIFICATION_CONFIG, webhook)
    await do(SEND_MESSAGE, message("work") | {"configuration": {"taskPushNotificationConfig": webhook}})
    for op in (GET_TASK_PUSH_NOTIFICATION_CONFIG, DELETE_TASK_PUSH_NOTIFICATION_CONFIG):
        await do(op, {"taskId": over, "id": "c"})
    await do(LIST_TASK_PUSH_NOTIFICATION_CONFIGS, {"taskId": over})
    await do(GET_EXTENDED_AGENT_CARD, {})


BINDINGS = {"1.0": ("in process", "JSONRPC", "HTTP+JSON", "GRPC"), "0.3": ("JSONRPC", "HTTP+JSON", "GRPC")}


@pytest.mark.parametrize(
    "version",
    [
        pytest.param("1.0", marks=pytest.mark.req("BIND-01", "DATA-02", "ERR-18", "STRM-01", "B025", "B007")),
        pytest.param("0.3", marks=pytest.mark.req("V03-01", "V03-P01")),
    ],
)
async def test_every_operation_and_every_error_is_the_same_on_all_bindings(version: str) -> None:
    first, *others = BINDINGS[version]
    seen = {}
    for binding in (first, *others):
        async with connected(binding, version) as client:
            seen[binding] = await run_script(client, version)

    for binding in others:
        for step, (outcome, wanted) in enumerate(zip(seen[binding], seen[first], strict=True)):
            assert outcome == wanted, f"step {step} over {binding}"
