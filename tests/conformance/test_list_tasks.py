"""ListTasks: filters, order, pages, and what a listed task shows."""

from __future__ import annotations

import base64
import json

import pytest

from dragoman import Agent, Fail, TaskState
from dragoman.errors import InvalidParamsError
from dragoman.model import Timestamp
from dragoman.ports.clock import SystemClock
from tests.client.words import connect_to, task
from tests.conformance.raw import say
from tests.http.peer import peer, result

MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
START = Timestamp.parse("2026-03-01T12:00:00.000Z")


class StepClock(SystemClock):
    """Goes on by ``step`` ms with each look; ids are those of the machine's clock."""

    def __init__(self, step: int = 1000) -> None:
        self.now = START.ms
        self.step = step

    def now_ms(self) -> int:
        self.now += self.step
        return self.now


def listed_agent() -> Agent:
    agent = Agent("Listed", description="Makes tasks.")

    @agent.task
    async def work(ctx):
        if ctx.text == "fail":
            raise Fail("failed")
        if ctx.text == "ask":
            await ctx.ask("what?")
        if ctx.text != "nothing":
            await ctx.artifact("result")

    return agent


def ids(page) -> list[str]:
    return [found.id for found in page.tasks]


@pytest.mark.req("LIST-03", "AMB-50", "DATA-23", "LIST-15")
async def test_the_newest_status_comes_first_also_after_a_change(connect) -> None:
    client = await connect(listed_agent(), clock=StepClock())

    made = [await client.send(text) for text in ("a", "ask", "b", "c")]
    assert ids(await client.list_tasks()) == [found.id for found in reversed(made)]
    await client.send("this", task_id=made[1].id)

    page = await client.list_tasks()
    assert ids(page) == [made[n].id for n in (1, 3, 2, 0)]
    moments = [found.status.timestamp for found in page.tasks]
    assert moments == sorted(moments, reverse=True)


@pytest.mark.req("LIST-02", "LIST-03", "LIST-07", "LIST-08", "LIST-10", "LIST-13", "AMB-50", "AMB-51")
@pytest.mark.parametrize("step", [0, 1000], ids=["all at one moment", "each later"])
async def test_pages_have_every_task_once_in_order_whatever_the_size(connect, step) -> None:
    client = await connect(listed_agent(), clock=StepClock(step))
    made = {(await client.send("a")).id for _ in range(7)}

    whole = ids(await client.list_tasks())
    for size in (1, 2, 3, 7, 100):
        pages, token = [], ""
        while not pages or token:
            page = await client.list_tasks(page_size=size, page_token=token)
            assert (page.page_size, page.total_size) == (size, 7)
            assert len(page.tasks) <= size
            pages.append(ids(page))
            token = page.next_page_token
        assert [found for page in pages for found in page] == whole
        assert [found.id async for found in client.tasks(page_size=size)] == whole
    assert set(whole) == made
    assert whole == sorted(whole, reverse=True) or step


@pytest.mark.req("LIST-02", "AMB-50", "AMB-51")
async def test_a_page_token_marks_a_place_and_not_a_count(connect) -> None:
    client = await connect(listed_agent(), clock=StepClock())
    made = [(await client.send("a")).id for _ in range(4)]

    first = await client.list_tasks(page_size=2)
    await client.send("new")
    second = await client.list_tasks(page_size=2, page_token=first.next_page_token)

    assert ids(first) + ids(second) == made[::-1]
    assert second.total_size == 5


@pytest.mark.req("LIST-05", "LIST-06", "LIST-07", "LIST-12", "AMB-41", "AMB-52", "DATA-12", "DATA-15")
async def test_what_a_listing_has_and_lacks_on_the_wire(wire) -> None:
    raw = await wire(listed_agent())
    empty = (await raw.call("ListTasks", {})).result
    for text in ("a", "nothing"):
        await raw.call("SendMessage", say(text))

    absent, false, true = [
        (await raw.call("ListTasks", params)).result
        for params in ({}, {"includeArtifacts": False}, {"includeArtifacts": True})
    ]

    assert empty == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}
    for listing in (absent, false):
        assert all(set(found) == {"id", "contextId", "status"} for found in listing["tasks"])
    shown = sorted(len(found.get("artifacts", [])) for found in true["tasks"])
    assert shown == [0, 1]
    assert all("history" not in found for found in true["tasks"])
    assert (true["nextPageToken"], true["pageSize"], true["totalSize"]) == ("", 50, 2)


@pytest.mark.req("LIST-09", "LIST-13", "LIST-15", "AMB-53", "AMB-47", "DATA-09")
async def test_filters_narrow_together(connect) -> None:
    client = await connect(listed_agent(), clock=StepClock())
    kinds = [("ok", "a"), ("fail", "a"), ("ok", "b"), ("ask", "b"), ("ok", "a")]
    made = [await client.send(text, context_id=context) for text, context in kinds]
    done, third = TaskState.COMPLETED, made[2].status.timestamp

    async def found(**filters) -> list[int]:
        page = await client.list_tasks(**filters)
        assert page.total_size == len(page.tasks)
        return sorted([made_task.id for made_task in made].index(task_id) for task_id in ids(page))

    assert await found(context_id="a") == [0, 1, 4]
    assert await found(context_id="A") == []
    assert await found(status=done) == [0, 2, 4]
    assert await found(status=TaskState.UNSPECIFIED) == [0, 1, 2, 3, 4]
    assert await found(status=TaskState.INPUT_REQUIRED) == [3]
    assert await found(status=TaskState.REJECTED) == []
    assert await found(context_id="a", status=done) == [0, 4]
    assert await found(status_timestamp_after=third) == [2, 3, 4]
    assert await found(status_timestamp_after=Timestamp.from_ms(third.ms + 1)) == [3, 4]
    assert await found(status_timestamp_after=third, status=done, context_id="a") == [4]
    assert await found(status_timestamp_after=made[4].status.timestamp, context_id="b") == []


@pytest.mark.req("LIST-09", "AMB-53", "AMB-47", "DATA-06", "DATA-09", "HTTP-05")
async def test_a_moment_may_come_in_any_rfc_3339_form(wire) -> None:
    raw = await wire(listed_agent(), clock=StepClock(0))
    await raw.call("SendMessage", say("a"))

    for moment, total in (
        ("2026-03-01T12:00:00Z", 1),
        ("2026-03-01T12:00:00.000000000Z", 1),
        ("2026-03-01T14:00:00+02:00", 1),
        ("2026-03-01T11:59:59.999Z", 1),
        ("2026-03-01T12:00:00.001Z", 0),
        ("2026-03-01T12:00:01-00:00", 0),
    ):
        listed = (await raw.call("ListTasks", {"statusTimestampAfter": moment})).result
        assert listed["totalSize"] == total, moment


@pytest.mark.req("LIST-10", "LIST-11", "AMB-51", "AMB-42", "AMB-47", "ERR-08", "DATA-15", "DATA-09")
async def test_a_bad_parameter_is_refused_by_name(wire) -> None:
    raw = await wire(listed_agent())

    for params, field in (
        ({"pageSize": 0}, "pageSize"),
        ({"pageSize": 101}, "pageSize"),
        ({"pageSize": -1}, "pageSize"),
        ({"pageSize": "x"}, "pageSize"),
        ({"pageSize": 1.5}, "pageSize"),
        ({"historyLength": -1}, "historyLength"),
        ({"status": "TASK_STATE_DONE"}, "status"),
        ({"status": "completed"}, "status"),
        ({"status": 42}, "status"),
        ({"statusTimestampAfter": "2026-03-01 12:00:00Z"}, "statusTimestampAfter"),
        ({"statusTimestampAfter": "2026-03-01T12:00:00"}, "statusTimestampAfter"),
        ({"statusTimestampAfter": "yesterday"}, "statusTimestampAfter"),
        ({"includeArtifacts": "perhaps"}, "includeArtifacts"),
        ({"pageToken": "abc"}, "pageToken"),
    ):
        assert (await raw.call("ListTasks", params)).fields == [field], params


@pytest.mark.req("LIST-10", "AMB-51")
async def test_page_sizes_at_the_borders_are_taken(wire) -> None:
    raw = await wire(listed_agent())

    for size in (1, 100):
        assert (await raw.call("ListTasks", {"pageSize": size})).result["pageSize"] == size


@pytest.mark.req("B107", "AMB-51", "LIST-01", "LIST-04")
async def test_a_token_that_is_not_of_this_listing_is_refused(connect) -> None:
    client = await connect(listed_agent(), clock=StepClock())
    for _ in range(3):
        await client.send("a", context_id="c")
    token = (await client.list_tasks(page_size=1)).next_page_token
    forged = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-1] + b"x"

    for bad, filters in (
        ("abc", {}),
        ("=", {}),
        ("ä", {}),
        ("x" * 5_000, {}),
        (base64.urlsafe_b64encode(b"garbage").decode(), {}),
        (base64.urlsafe_b64encode(forged).decode().rstrip("="), {}),
        (json.dumps({"offset": 0}), {}),
        (token, {"context_id": "c"}),
        (token, {"status": TaskState.COMPLETED}),
        (token, {"status_timestamp_after": START}),
    ):
        with pytest.raises(InvalidParamsError) as refused:
            await client.list_tasks(page_token=bad, **filters)
        assert [violation.field for violation in refused.value.violations] == ["pageToken"]
    assert len((await client.list_tasks(page_size=2, page_token=token)).tasks) == 2


@pytest.mark.req("LIST-06", "SEND-09")
@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
async def test_listed_artifacts_are_the_real_ones(connect) -> None:
    client = await connect(listed_agent())
    made = await client.send("a")

    listed = (await client.list_tasks(include_artifacts=True)).tasks[0]

    assert listed.artifacts == made.artifacts
    assert listed.status == made.status


@pytest.mark.req("LIST-08", "AMB-51")
async def test_a_client_follows_the_token_and_nothing_else() -> None:
    page = {"pageSize": 1, "totalSize": 99}
    answers = [
        result({"tasks": [task("WORKING", "1")], "nextPageToken": "a", **page}),
        result({"tasks": [], "nextPageToken": "b", **page}),
        result({"tasks": [task("WORKING", "2"), task("WORKING", "3")], "nextPageToken": "", **page}),
    ]
    async with peer() as served, connect_to(served.on("POST", "/", *answers)) as client:
        found = [each.id async for each in client.tasks(page_size=50)]

    assert found == ["1", "2", "3"]
    assert [request.json["params"].get("pageToken") for request in served.received] == [None, "a", "b"]


@pytest.mark.req("DATA-15", "B023")
@MEMORY
async def test_parameters_that_are_zero_or_false_are_sent(connect) -> None:
    client = await connect(listed_agent())

    with pytest.raises(InvalidParamsError):
        await client.list_tasks(page_size=0)
    assert (await client.list_tasks(history_length=0, include_artifacts=False)).page_size == 50
