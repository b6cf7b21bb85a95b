"""Who may do and see what: every operation within the caller's own. Spec: §3.3.2, §7.4, §13.1."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from dragoman import Agent, MemoryStore
from dragoman.errors import PermissionDeniedError, RateLimitedError, UnauthenticatedError
from dragoman.model import OPERATIONS
from dragoman.ports.operations import Caller
from tests.conformance.wire import BOUND, SPOKEN, Told, Wire, as_caller, bare, by_header, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
ANN, BOB = as_caller("ann"), as_caller("bob")


class Office:
    """An agent whose tasks are finished, asking, or held at a gate, as the message says."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.agent = Agent("Office", description="Works.")

        @self.agent.task
        async def work(ctx):  # type: ignore[no-untyped-def]
            if ctx.text == "ask":
                await ctx.ask("and?")
            if ctx.text == "hold":
                async with asyncio.timeout(BOUND):
                    await self.gate.wait()
            return f"done for {ctx.caller.id}"


def requests_about(task_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Every operation that names a task; push is refused by capability, whoever asks."""
    return [
        ("GetTask", {"id": task_id}),
        ("CancelTask", {"id": task_id}),
        ("SubscribeToTask", {"id": task_id}),
        ("SendMessage", said("mine now", taskId=task_id)),
        ("SendStreamingMessage", said("mine now", taskId=task_id)),
    ]


async def begun(wire: Wire, spoken: str, text: str) -> dict[str, Any]:
    request = {**said(text), "configuration": {"returnImmediately": text == "hold"}}
    task: dict[str, Any] = (await wire.call(spoken, "SendMessage", request, headers=ANN)).result["task"]
    return task


def without_id(told: Told, id: str) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that a caller sees of an answer, but for the id that it asked about itself."""
    headers = [(k, v) for k, v in told.headers.items() if k not in ("date", "content-length")]
    return told.status, told.body.replace(id.encode(), b"ID"), headers


@BOTH
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.req(
    "AUTH-08", "AUTH-10", "AUTH-05", "ERR-06", "ERR-09", "ERR-10", "AMB-36", "SEC-16", "B123", "GET-03", "LIST-04"
)
async def test_a_task_of_somebody_else_is_to_the_byte_a_task_that_does_not_exist(
    spoken: str, kind: str, tmp_path: Any
) -> None:
    office = Office()
    store = "memory" if kind == "memory" else f"sqlite:///{tmp_path}/tasks.db"
    async with served(office.agent, identify=by_header, store=store) as wire:
        tasks = [await begun(wire, spoken, text) for text in ("hold", "ask", "at once")]
        for task in tasks:
            for (operation, request), (_, unknown) in zip(
                requests_about(task["id"]), requests_about("no-such-task-at-all"), strict=True
            ):
                theirs = await wire.call(spoken, operation, request, headers=BOB)
                nobodys = await wire.call(spoken, operation, unknown, headers=BOB)
                assert theirs.reason == "TASK_NOT_FOUND", operation
                assert without_id(theirs, task["id"]) == without_id(nobodys, "no-such-task-at-all")
        bobs = (await wire.call(spoken, "ListTasks", {"includeArtifacts": True}, headers=BOB)).result
        anns = (await wire.call(spoken, "ListTasks", headers=ANN)).result
        office.gate.set()
        states = [
            (await wire.call(spoken, "GetTask", {"id": task["id"]}, headers=ANN)).result["status"]["state"]
            for task in tasks[1:]
        ]

    assert (bobs["tasks"], bobs["totalSize"]) == ([], 0)
    assert {task["id"] for task in anns["tasks"]} == {task["id"] for task in tasks}
    assert states == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"], "nothing that bob did came through"


@pytest.mark.req("AUTH-08", "AUTH-10", "B123")
async def test_a_foreign_task_is_not_even_read_so_that_it_takes_no_more_time_than_none() -> None:
    found: list[str] = []

    class Watched(MemoryStore):
        async def task(self, task_id: str, scope: Any) -> Any:
            stored = await super().task(task_id, scope)
            found.append(stored.scope.owner if stored else "nothing")
            return stored

    async with served(Office().agent, identify=by_header, store=Watched()) as wire:
        task = await begun(wire, "JSONRPC", "at once")
        for operation, request in requests_about(task["id"]):
            await wire.rpc(operation, request, headers=BOB)

    assert found == ["nothing"] * 5


@BOTH
@pytest.mark.req("AUTH-08", "B123", "STRM-03")
async def test_one_callers_stream_never_shows_another_callers_task(spoken: str) -> None:
    office = Office()
    async with served(office.agent, identify=by_header) as wire, AsyncExitStack() as stack:
        streams = {}
        for name in ("ann", "bob"):
            opened = wire.stream(spoken, "SendStreamingMessage", said("hold"), headers=as_caller(name))
            streams[name] = await stack.enter_async_context(opened)
        office.gate.set()
        told = {name: [bare(event) for event in await stream.rest()] for name, stream in streams.items()}

    for name, events in told.items():
        ids = {
            (event.get("task") or event.get("statusUpdate") or event.get("artifactUpdate"))
            and str(
                event.get("task", {}).get("id")
                or event.get("statusUpdate", {}).get("taskId")
                or event.get("artifactUpdate", {}).get("taskId")
            )
            for event in events
        }
        assert len(ids) == 1
        assert f"done for {name}" in str(events)


@BOTH
@pytest.mark.req("LIST-04", "AUTH-10", "ERR-10")
async def test_a_page_token_of_somebody_else_leads_nowhere(spoken: str) -> None:
    office = Office()
    async with served(office.agent, identify=by_header) as wire:
        for _ in range(2):
            await begun(wire, spoken, "at once")
        token = (await wire.call(spoken, "ListTasks", {"pageSize": 1}, headers=ANN)).result["nextPageToken"]
        told = await wire.call(spoken, "ListTasks", {"pageSize": 1, "pageToken": token}, headers=BOB)

    assert token
    assert told.fields == ["pageToken"]


# Refusals as a whole.


@BOTH
@pytest.mark.req("ERR-02", "ERR-03", "AUTH-05", "AUTH-06", "AMB-34", "AMB-35", "SEC-16")
async def test_without_credentials_every_operation_is_401_with_a_challenge_before_anything_is_looked_at(
    spoken: str,
) -> None:
    office = Office()
    bodies: dict[str, Any] = dict(requests_about("t")) | {
        "ListTasks": {},
        "CreateTaskPushNotificationConfig": {"taskId": "t", "url": "https://h.example"},
        "GetTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
        "ListTaskPushNotificationConfigs": {"taskId": "t"},
        "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
        "GetExtendedAgentCard": {},
    }
    assert set(bodies) == set(OPERATIONS)
    async with served(office.agent, identify=by_header) as wire:
        for operation, request in bodies.items():
            told = await wire.call(spoken, operation, request)
            assert told.status == 401, operation
            assert told.headers["www-authenticate"] == 'Bearer realm="agents"'
            assert told.reason == ""
            if spoken == "JSONRPC":
                assert told.code == -32000
                assert told.json["jsonrpc"] == "2.0"
            else:
                assert (told.code, told.error["status"]) == (401, "UNAUTHENTICATED")
        broken = await wire.ask("POST", "/" if spoken == "JSONRPC" else "/message:send", b"{", {})

    assert broken.status == 401


@BOTH
@pytest.mark.parametrize(
    ("error", "status", "grpc"),
    [
        (PermissionDeniedError("The scope agents.call is missing"), 403, "PERMISSION_DENIED"),
        (UnauthenticatedError("Expired"), 401, "UNAUTHENTICATED"),
        (RateLimitedError("Too many", retry_after=7), 429, "RESOURCE_EXHAUSTED"),
        (KeyError("secret-key-name"), 500, "INTERNAL"),
    ],
    ids=["forbidden", "expired", "rate", "a fault"],
)
@pytest.mark.req("ERR-04", "ERR-05", "ERR-12", "AUTH-06", "AUTH-07", "AMB-34", "AMB-36", "AMB-38", "SEC-07", "SEC-10")
async def test_what_the_authenticator_says_is_the_answer(spoken: str, error: Exception, status: int, grpc: str) -> None:
    async def refuse(scope: Any) -> Caller:
        raise error

    async with served(Office().agent, identify=refuse) as wire:
        told = await wire.call(spoken, "ListTasks")

    if spoken == "HTTP+JSON":
        assert (told.status, told.code, told.error["status"]) == (status, status, grpc)
    elif status == 500:
        assert (told.status, told.code) == (200, -32603)
    else:
        assert told.status == status
    assert ("www-authenticate" in told.headers) is (status == 401)
    assert told.headers.get("retry-after") == ("7" if status == 429 else None)
    assert b"secret-key-name" not in told.body
    if status != 500:
        assert told.error["message"] == str(error)


@BOTH
@pytest.mark.req("AUTH-08", "AUTH-09", "ERR-04")
async def test_the_agent_knows_its_caller(spoken: str) -> None:
    agent = Agent("Who", description="Says who calls.")

    @agent.task
    async def who(ctx):  # type: ignore[no-untyped-def]
        return {"id": ctx.caller.id, "anonymous": ctx.caller.is_anonymous, "scopes": sorted(ctx.caller.scopes)}

    async def identify(scope: Any) -> Caller:
        return Caller(id="ann", scopes=frozenset({"read", "write"}))

    async with served(agent, identify=identify) as wire, served(agent) as open_to_all:
        known = (await wire.call(spoken, "SendMessage", said())).result["task"]
        unknown = (await open_to_all.call(spoken, "SendMessage", said())).result["task"]

    data = [task["artifacts"][0]["parts"][0]["data"] for task in (known, unknown)]
    assert data == [
        {"id": "ann", "anonymous": False, "scopes": ["read", "write"]},
        {"id": "", "anonymous": True, "scopes": []},
    ]
