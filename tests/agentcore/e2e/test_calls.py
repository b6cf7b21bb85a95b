"""Calls through the front: versions, sessions, streams, parallel first calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from dragoman import agentcore
from dragoman.agentcore import AgentCoreApp, AgentFailed
from dragoman.client import Assembly
from dragoman.errors import TaskNotFoundError
from dragoman.http.asgi import Receive, Scope, Send
from dragoman.model import TaskState
from dragoman.testing.agentcore_front import Front, FrontSettings, Lifecycle, Shared, SigV4, Truncate
from dragoman.testing.agentcore_front.headers import SESSION_ID
from dragoman.testing.agentcore_front.serving import AsgiApp
from tests.agentcore.e2e.parts import (
    OTHER,
    SESSION,
    Tides,
    calling,
    hosted,
    public_url,
    rehearsal,
    said,
    texts,
    wrapped,
)
from tests.agentcore.front.parts import rehearsal as bare
from tests.agentcore.front.parts import signed_headers


@pytest.fixture
def tides() -> Tides:
    """An agent in the hands of the test."""
    return Tides()


@pytest.fixture
async def front(tides: Tides) -> AsyncIterator[Front]:
    """The front before it."""
    async with rehearsal(tides.agent) as running:
        yield running


def sessions_of(front: Front) -> set[str]:
    return {record.headers.get(SESSION_ID, "") for record in front.requests}


@pytest.mark.req("E2E-01")
async def test_a_signed_call_of_1_0_is_understood_although_its_version_was_dropped(front: Front) -> None:
    async with calling(front) as client:
        task = await client.send("Next high water at Pier 6?")

    assert (task.status.state, said(task)) == (TaskState.COMPLETED, ["18:42, Next high water at Pier 6?"])
    call = front.requests[-1]
    assert (call.rpc_method, call.headers["a2a-version"]) == ("SendMessage", "1.0")
    assert call.forwarded is not None
    assert "a2a-version" not in call.forwarded.headers
    assert "authorization" not in call.forwarded.headers


@pytest.mark.req("E2E-03")
async def test_the_card_and_all_calls_are_of_one_session(front: Front) -> None:
    async with calling(front) as client:
        for text in ("one", "two", "three"):
            await client.send(text)

    assert [record.method for record in front.requests] == ["GET", "POST", "POST", "POST"]
    assert sessions_of(front) == {client.session_id}
    assert set(front.sessions) == {client.session_id}


@pytest.mark.req("E2E-04")
async def test_a_session_that_the_front_allocates_is_used_from_then_on(front: Front) -> None:
    async with calling(front, session_id="") as client:
        await client.send("one")
        await client.send("two")

    first, *others = front.requests
    assert SESSION_ID not in first.headers
    assert {record.headers[SESSION_ID] for record in others} == {client.session_id} == set(front.sessions)


@pytest.mark.req("E2E-05")
async def test_a_signed_stream_gives_its_events_one_by_one(front: Front, tides: Tides) -> None:
    seen = []
    async with calling(front) as client, asyncio.timeout(20):
        async for event in client.stream("parts3"):
            seen.append(texts(event))
            tides.go_on.release()  # the next part is not made before this one was seen

    assert [text for text in seen if text[:1].isdigit()] == ["0 ", "1 ", "2 ", "18:42, parts3"]
    assert seen[-1] == "COMPLETED"


@pytest.mark.req("E2E-06")
async def test_a_stream_that_was_cut_goes_on_without_a_gap_and_without_a_duplicate(front: Front, tides: Tides) -> None:
    front.fail_next(Truncate(after_events=2), method="SendStreamingMessage")
    seen, whole = [], Assembly()
    async with calling(front) as client, asyncio.timeout(20):
        async for event in client.stream("parts4"):
            seen.append(texts(event))
            whole.apply(event)
            tides.go_on.release()

    methods = [record.rpc_method for record in front.requests if record.method == "POST"]
    assert methods == ["SendStreamingMessage", "SubscribeToTask"]
    task = whole.result().task
    assert task is not None
    assert said(task) == ["0 1 2 3 ", "18:42, parts4"]
    chunks = [text for text in seen if text[:1].isdigit()]
    assert sorted(set(chunks)) == sorted(chunks)
    assert seen[-1] == "COMPLETED"
    assert sessions_of(front) == {client.session_id}
    assert tides.turns == 1


@pytest.mark.req("E2E-15")
@pytest.mark.parametrize("hold", [15.0, 0.0])
async def test_parallel_first_calls_meet_a_cold_start_once_or_often(tides: Tides, hold: float) -> None:
    settings = FrontSettings(lifecycle=Lifecycle(create_s=1.0), time_scale=0.4)
    async with (
        asyncio.timeout(30),
        rehearsal(tides.agent, front={"settings": settings}) as front,
        calling(front, card=False, hold=hold) as client,
    ):
        tasks = await asyncio.gather(*(client.send(f"{number}") for number in range(20)))

    statuses = [record.status for record in front.requests]
    assert sorted(said(task)[0] for task in tasks) == sorted(f"18:42, {number}" for number in range(20))
    assert statuses.count(200) == 20
    assert statuses.count(409) <= 1 if hold else statuses.count(409) >= 19


@pytest.mark.req("E2E-21")
async def test_an_answer_with_another_status_reaches_the_caller_as_a_failed_agent(tides: Tides) -> None:
    def middleware(app: AgentCoreApp) -> AsgiApp:
        async def failing(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "POST":
                await send({"type": "http.response.start", "status": 500, "headers": []})
                await send({"type": "http.response.body", "body": b"a plug-in failed"})
            else:
                await app(scope, receive, send)

        return failing

    async with (
        wrapped(tides.agent, middleware) as url,
        Front(Shared(url), auth=SigV4(), watch=False) as front,
        calling(front, card=False) as client,
    ):
        with pytest.raises(AgentFailed) as raised:
            await client.send("hello")

    error = raised.value
    assert (error.origin.status, error.origin.code, error.attempts) == (424, -32055, 1)
    assert error.session_id == client.session_id
    assert "plug-in" not in str(error)
    assert [violation.rule for violation in front.violations] == ["status"]


@pytest.mark.req("E2E-22", "B167")
async def test_malformed_bodies_are_answered_with_200_and_a_json_rpc_error(tides: Tides) -> None:
    bodies = {
        b"": -32700,
        b'{"jsonrpc":"2.0","id":': -32700,
        b"\xff\xfe": -32700,
        b"[]": -32600,
        b'"text"': -32600,
        b'{"id":1}': -32600,
        b'{"jsonrpc":"1.0","id":1,"method":"SendMessage"}': -32600,
        b'{"jsonrpc":"2.0","id":"q-7","method":"Nonsense"}': -32601,
        b'{"jsonrpc":"2.0","id":null,"method":"SendMessage","params":{"message":7}}': -32602,
    }
    app = agentcore.app(tides.agent, own_thread=False, environment={})
    async with hosted(app) as url, bare(url, auth=SigV4()) as caller:
        answers = {}
        for body in bodies:
            headers = signed_headers("POST", caller.front.invocation_url, body, {SESSION_ID: SESSION})
            answers[body] = await caller.client.post(caller.front.invocation_url, content=body, headers=headers)

    assert {answer.status_code for answer in answers.values()} == {200}
    assert {body: answer.json()["error"]["code"] for body, answer in answers.items()} == bodies
    assert answers[b'{"jsonrpc":"2.0","id":"q-7","method":"Nonsense"}'].json()["id"] == "q-7"
    assert all(json.loads(answer.content)["jsonrpc"] == "2.0" for answer in answers.values())


@pytest.mark.req("E2E-23")
async def test_two_sessions_on_one_durable_store_do_not_see_each_other(tides: Tides, tmp_path) -> None:
    async with (
        rehearsal(tides.agent, store=f"sqlite:///{tmp_path / 'tasks.db'}") as front,
        calling(front, session_id=SESSION) as one,
        calling(front, session_id=OTHER) as other,
    ):
        mine = await one.send("mine")
        theirs = await other.send("theirs")

        for client, own, foreign in ((one, mine, theirs), (other, theirs, mine)):
            assert (await client.get_task(own.id)).id == own.id
            assert [task.id for task in (await client.list_tasks()).tasks] == [own.id]
            for call in (client.get_task(foreign.id), client.cancel(foreign.id), client.send("x", task_id=foreign.id)):
                with pytest.raises(TaskNotFoundError):
                    await call


def test_the_platform_tells_the_agent_where_it_is() -> None:
    assert public_url(1).startswith("http://127.0.0.1:1/runtimes/arn%3Aaws%3Abedrock-agentcore")
