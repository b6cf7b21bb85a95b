"""Two users, every operation, on every binding: what is somebody else's does not exist. Spec: §3.3.2, §13.1."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman import EVERYBODY, OWN, Agent, App, Caller, Client, Reach
from dragoman.errors import A2AError, InvalidParamsError, PermissionDeniedError, TaskNotFoundError
from dragoman.model import Task, TaskPushNotificationConfig, TaskState
from tests.conformance.wire import as_caller, by_header

NO_TASK = "no-such-task"
on_sockets = pytest.mark.parametrize(
    "binding", ["in process", "JSONRPC", "HTTP+JSON", "GRPC", "WebSocket"], indirect=True
)
in_memory = pytest.mark.parametrize("store", ["memory"], indirect=True)


def asking() -> Agent:
    agent = Agent("Office", description="Works when it is answered.", push=True)

    @agent.task
    async def work(ctx):  # type: ignore[no-untyped-def]
        if ctx.text == "hold":
            await asyncio.Event().wait()
        answer = await ctx.ask("and?") if ctx.text != "at once" else ctx
        return f"{answer.text} by {ctx.caller.id}"

    return agent


class Office:
    """An app, and clients of it by name."""

    def __init__(self, connect: Callable[..., Awaitable[Client]], **settings: Any) -> None:
        self._connect = connect
        self._settings = {"identify": by_header, **settings}
        self._app: App | None = None

    async def client(self, name: str) -> Client:
        given = {"client_settings": {"headers": as_caller(name)}}
        client = await self._connect(self._app or asking(), **given, **({} if self._app else self._settings))
        self._app = self._connect.app  # type: ignore[attr-defined]
        return client


HOOK = TaskPushNotificationConfig(url="https://hooks.example/h", id="hook-1")


async def every_operation(client: Client, task_id: str, config: str = "hook-1") -> dict[str, A2AError | None]:
    """What each operation about a task is answered with."""

    async def first(stream: Any) -> None:
        async with stream:
            async for _ in stream:
                return

    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "GetTask": lambda: client.get_task(task_id),
        "CreateTaskPushNotificationConfig": lambda: client.create_push_config(task_id, HOOK),
        "GetTaskPushNotificationConfig": lambda: client.get_push_config(task_id, config),
        "ListTaskPushNotificationConfigs": lambda: client.list_push_configs(task_id),
        "DeleteTaskPushNotificationConfig": lambda: client.delete_push_config(task_id, config),
        "SubscribeToTask": lambda: first(client.subscribe(task_id)),
        "SendMessage": lambda: client.send("mine now", task_id=task_id),
        "SendStreamingMessage": lambda: first(client.stream("mine now", task_id=task_id)),
        "CancelTask": lambda: client.cancel(task_id),
    }
    found: dict[str, A2AError | None] = {}
    for name, call in calls.items():
        try:
            await call()
            found[name] = None
        except A2AError as error:
            found[name] = error
    return found


def plain(errors: dict[str, A2AError | None], task_id: str) -> dict[str, Any]:
    return {
        name: error
        and (type(error), error.code, str(error), {key: v.replace(task_id, "ID") for key, v in error.metadata.items()})
        for name, error in errors.items()
    }


@on_sockets
@pytest.mark.req(
    "AUTH-08", "AUTH-10", "AMB-36", "B123", "ERR-06", "ERR-10", "PCFG-05", "PCFG-11", "PCFG-02", "SEC-16", "CANCEL-05"
)
async def test_every_operation_on_a_task_of_somebody_else_is_answered_as_for_one_that_never_was(connect: Any) -> None:
    office = Office(connect)
    ann, bob = await office.client("ann"), await office.client("bob")
    waiting, done = await ann.send("ask"), await ann.send("at once")
    working = await ann.send("hold", wait=False)
    assert isinstance(waiting, Task)
    assert isinstance(done, Task)
    assert isinstance(working, Task)
    await ann.create_push_config(waiting, HOOK)

    for task in (waiting, done, working):
        theirs = plain(await every_operation(bob, task.id), task.id)
        nobodys = plain(await every_operation(bob, NO_TASK), NO_TASK)
        assert theirs == nobodys
        assert {error[0] for error in theirs.values()} == {TaskNotFoundError}
    bobs = await bob.list_tasks()
    anns = await ann.list_tasks()
    after = [(await ann.get_task(task.id)).status.state for task in (waiting, working)]
    hooks = await ann.list_push_configs(waiting)

    assert (bobs.tasks, bobs.total_size) == ([], 0)
    assert {task.id for task in anns.tasks} == {waiting.id, done.id, working.id}
    assert after == [TaskState.INPUT_REQUIRED, TaskState.WORKING]
    assert [config.id for config in hooks.configs] == ["hook-1"]


@on_sockets
@pytest.mark.req("LIST-04", "PCFG-07", "AUTH-10", "AMB-51")
async def test_page_tokens_are_good_for_the_caller_who_got_them_only(connect: Any) -> None:
    office = Office(connect, authorize=lambda caller, operation, tenant: EVERYBODY)
    ann, bob = await office.client("ann"), await office.client("bob")
    tasks = [await ann.send("ask") for _ in range(2)]
    for name in ("one", "two"):
        await ann.create_push_config(tasks[0], TaskPushNotificationConfig(url=HOOK.url, id=name))
    page = await ann.list_tasks(page_size=1)
    hooks = await ann.list_push_configs(tasks[0], page_size=1)

    for call in (
        bob.list_tasks(page_size=1, page_token=page.next_page_token),
        bob.list_push_configs(tasks[0], page_size=1, page_token=hooks.next_page_token),
    ):
        with pytest.raises(InvalidParamsError) as caught:
            await call
        assert [violation.field for violation in caught.value.violations] == ["pageToken"]
    assert page.next_page_token
    assert hooks.next_page_token


@on_sockets
@in_memory
@pytest.mark.req("B125", "AMB-33", "AUTH-10", "CTX-03")
async def test_a_context_of_somebody_else_is_not_joined(connect: Any) -> None:
    office = Office(connect)
    ann, bob = await office.client("ann"), await office.client("bob")
    anns = await ann.send("at once")
    assert isinstance(anns, Task)

    bobs = await bob.send("at once", context_id=anns.context_id)
    assert isinstance(bobs, Task)

    for client, own in ((ann, anns), (bob, bobs)):
        assert [task.id for task in (await client.list_tasks(context_id=anns.context_id)).tasks] == [own.id]


# Reaching further.

TEAMS = {"ann": "red", "bob": "red", "cy": "blue"}
READING = {"GetTask", "ListTasks", "SubscribeToTask"}


async def by_role(caller: Caller, operation: str, tenant: str) -> Reach | None:
    """Colleagues may look; the boss may do everything; nobody whom no team knows may do anything."""
    if caller.id == "boss":
        return EVERYBODY
    if caller.id not in TEAMS:
        raise PermissionDeniedError("Members of a team only")
    mates = frozenset(name for name, team in TEAMS.items() if team == TEAMS[caller.id])
    return Reach(owners=mates) if operation in READING else None


@on_sockets
@pytest.mark.req("AUTH-08", "AUTH-09", "AUTH-10", "AMB-36", "B119")
async def test_who_may_reach_further_does_and_only_for_what_was_said(connect: Any) -> None:
    office = Office(connect, authorize=by_role)
    ann, bob, cy, boss = [await office.client(name) for name in ("ann", "bob", "cy", "boss")]
    task = await ann.send("ask")
    assert isinstance(task, Task)

    mates = await every_operation(bob, task.id)
    strangers = await every_operation(cy, task.id)
    listed = {name: await client.list_tasks() for name, client in (("bob", bob), ("cy", cy), ("boss", boss))}
    hook = await boss.create_push_config(task, HOOK)
    answered = await boss.send("go on", task=task)
    seen = await bob.get_task(task.id)
    new = await boss.send("at once")
    hidden = await every_operation(bob, new.id)  # type: ignore[union-attr]

    assert {name for name, error in mates.items() if error is None} == READING - {"ListTasks"}
    assert {type(error) for name, error in mates.items() if name not in READING} == {TaskNotFoundError}
    assert {type(error) for error in strangers.values()} == {TaskNotFoundError}
    assert {name: [t.id for t in page.tasks] for name, page in listed.items()} == {
        "bob": [task.id],
        "cy": [],
        "boss": [task.id],
    }
    assert hook.id == "hook-1"
    assert isinstance(answered, Task)
    assert answered.status.state is seen.status.state is TaskState.COMPLETED
    assert {type(error) for error in hidden.values()} == {TaskNotFoundError}, "what boss makes is the boss's own"


@on_sockets
@in_memory
@pytest.mark.req("AUTH-08", "AMB-36", "ERR-04")
async def test_an_operation_that_is_refused_as_a_whole_is_permission_denied_whatever_it_is_about(connect: Any) -> None:
    office = Office(connect, authorize=by_role)
    stranger = await office.client("eve")

    for call in (stranger.list_tasks(), stranger.send("hi"), stranger.get_task(NO_TASK)):
        with pytest.raises(PermissionDeniedError, match="Members of a team only"):
            await call
    with pytest.raises(PermissionDeniedError):
        await anext(aiter(stranger.stream("hi")))


@on_sockets
@in_memory
@pytest.mark.req("AUTH-08", "SEC-10")
@pytest.mark.parametrize("answer", [True, "ann", frozenset({"ann"})], ids=["true", "a name", "a set"])
async def test_what_is_no_reach_opens_nothing(connect: Any, answer: Any) -> None:
    office = Office(connect, authorize=lambda caller, operation, tenant: answer)
    client = await office.client("bob")

    with pytest.raises(A2AError) as caught:
        await client.list_tasks()

    assert caught.value.code == -32603
    assert Reach() == OWN
