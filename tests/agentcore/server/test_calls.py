"""What a handler knows of its call, and whose tasks a call may see."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman import Agent, agentcore
from dragoman.errors import ConfigurationError
from tests.agentcore.server.hosts import (
    REQUEST,
    SESSION,
    calling,
    echo,
    hosted,
    post,
    rpc,
    send,
    served,
    until,
)

TOKENS = {
    "WorkloadAccessToken": "SECRET-wat",
    "X-AMZ-Bedrock-AgentCore-Identity-WAT": "SECRET-iwat",
    "Authorization": "Bearer SECRET-bearer",
}
HEADERS = {
    SESSION.title(): "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa",
    REQUEST.upper(): "3f1c5a02-6c0e-4a9a-b1b5-0c8b5c7f9d10",
    "x-amzn-bedrock-agentcore-RUNTIME-User-Id": "pilot",
    "X-Amzn-Bedrock-AgentCore-Runtime-Custom-Berth": "Pier 6",
    "OAuth2CallbackURL": "https://callback.example/",
    "X-Amzn-Trace-Id": "Root=1-5759e988",
    "TraceParent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "traceState": "a=b",
    "Baggage": "berth=6;ttl=1, pilot%20boat = the%20Tern ,broken",
    "X-Request-Color": "blue",
    **TOKENS,
}


def reporting(found: list) -> Agent:
    """An agent that keeps what it knows of each call."""
    agent = Agent("reporting", description="x")

    @agent.task
    async def work(ctx):
        found.append((agentcore.of(ctx), ctx.context_id, ctx.caller))
        return "done"

    return agent


@pytest.mark.req("AC-S-40")
async def test_all_that_the_front_says_can_be_read_typed_in_any_casing():
    found: list = []
    async with served(hosted(reporting(found))) as client:
        await client.post("/", json=send(), headers=HEADERS)
    call = found[0][0]
    assert call.session_id == "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"
    assert call.request_id == "3f1c5a02-6c0e-4a9a-b1b5-0c8b5c7f9d10"
    assert (call.workload_access_token, call.identity_wat) == ("SECRET-wat", "SECRET-iwat")
    assert (call.authorization, call.user_id) == ("Bearer SECRET-bearer", "pilot")
    assert call.oauth2_callback_url == "https://callback.example/"
    assert call.custom == {"berth": "Pier 6"}
    assert call.baggage == {"berth": "6", "pilot%20boat": "the Tern"}
    assert call.trace["traceparent"].startswith("00-0af7")
    assert set(call.trace) == {"traceparent", "tracestate", "baggage", "x-amzn-trace-id"}
    assert call.headers["x-request-color"] == "blue"
    assert not set(call.headers) & {"authorization", "workloadaccesstoken", "traceparent", "host"}


@pytest.mark.req("AC-S-41", "AC-S-42")
async def test_a_local_call_has_no_session_and_a_fresh_request_id_that_is_not_the_one_of_json_rpc():
    found: list = []
    async with calling(hosted(reporting(found))) as client:
        await post(client, send(id="q-1"))
        await post(client, send(id="q-1"))
        await client.post("/", json=send(id="q-1"), headers={REQUEST: "from-the-front"})
    (first, *_), (second, *_), (third, *_) = found
    assert first.session_id is None
    assert len({first.request_id, second.request_id, third.request_id, "q-1", ""}) == 5
    assert third.request_id == "from-the-front"
    assert (first.workload_access_token, first.custom, first.baggage, first.trace) == (None, {}, {}, {})


def in_the_loop(found: dict) -> Agent:
    """An agent whose handler is a coroutine function."""
    agent = Agent("in-the-loop", description="x")

    @agent.task
    async def work(ctx):
        own = agentcore.of(ctx).workload_access_token
        await asyncio.sleep(0.02)
        inner = await asyncio.to_thread(lambda: agentcore.current().workload_access_token)
        found[ctx.text] = {own, inner, agentcore.current().workload_access_token}

    return agent


def in_threads(found: dict) -> Agent:
    """An agent whose handler is a plain function; all calls are in it at the same time."""
    agent, together = Agent("in-threads", description="x"), threading.Barrier(100, timeout=10)

    @agent.task
    def work(ctx):
        together.wait()
        found[ctx.text] = {agentcore.of(ctx).workload_access_token, agentcore.current().workload_access_token}

    return agent


@pytest.mark.req("AC-S-43")
@pytest.mark.parametrize("make", [in_the_loop, in_threads])
async def test_a_hundred_calls_at_once_read_their_own_values_in_threads_and_in_the_background(make):
    found: dict = {}
    async with calling(hosted(make(found))) as client:

        async def call(number: int) -> None:
            headers = {"WorkloadAccessToken": f"token-{number}", SESSION: f"session-{number:040}"}
            await client.post("/", json=send(str(number), immediately=number % 2 == 0), headers=headers)

        await asyncio.gather(*(call(number) for number in range(100)))
        await until(lambda: len(found) == 100)
    assert found == {str(number): {f"token-{number}"} for number in range(100)}


async def test_a_call_can_be_read_in_a_handler_only():
    with pytest.raises(LookupError):
        agentcore.current()


@pytest.mark.req("AC-S-44")
async def test_tokens_appear_in_no_repr_log_error_or_store(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(0)
    agent, shown = Agent("leaking", description="x"), []

    @agent.task
    async def work(ctx):
        call = agentcore.of(ctx)
        shown.extend([repr(call), repr(ctx.parameters), repr(ctx), str(call), repr(vars(type(call)))])
        raise ValueError("something")

    async with calling(hosted(agent, store=str(tmp_path / "tasks.db"), front_verifies=False)) as client:
        answers = [(await client.post("/", json=body, headers=TOKENS)).text for body in (send(), rpc("GetTask"))]
    stored = contents(tmp_path)
    everything = "".join([*shown, *answers, caplog.text, *(str(vars(r)) for r in caplog.records)])
    assert shown
    assert "SECRET" not in everything
    assert b"SECRET" not in stored


def contents(folder: Path) -> bytes:
    """All that is in the files of a folder."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.req("AC-S-45")
async def test_session_and_context_are_two_things_unless_one_says_otherwise():
    found: list = []
    session = "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"
    for derived in (False, True):
        async with calling(hosted(reporting(found), context_from_session=derived)) as client:
            await client.post("/", json=send(), headers={SESSION: session})
            await client.post("/", json=send(contextId="c-7"), headers={SESSION: session})
    contexts = [context for _, context, _ in found]
    assert contexts[0] not in (session, "")
    assert contexts[1:] == ["c-7", session, "c-7"]


ALICE, BOB = "alice-session-0000000000000000000000000", "bob-session-00000000000000000000000000000"


@pytest.mark.req("AC-S-46", "B169")
async def test_a_task_of_another_session_is_not_there(tmp_path: Path):
    store = str(tmp_path / "tasks.db")
    async with calling(hosted(store=store)) as alice, calling(hosted(store=store)) as bob:
        made = await alice.post("/", json=send("secret"), headers={SESSION: ALICE})
        task = made.json()["result"]["task"]
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            answer = await bob.post("/", json=rpc(method, {"id": task["id"]}), headers={SESSION: BOB})
            assert answer.json()["error"]["code"] == -32001, method
        for method in ("tasks/get", "tasks/cancel"):
            answer = await bob.post("/", json=rpc(method, {"id": task["id"]}), headers={SESSION: BOB})
            assert answer.json()["error"]["code"] == -32001, method
        answer = await bob.post("/", json=send(taskId=task["id"]), headers={SESSION: BOB})
        assert answer.json()["error"]["code"] == -32001
        listed = await bob.post("/", json=rpc("ListTasks"), headers={SESSION: BOB})
        assert listed.json()["result"]["tasks"] == []
        config = {"taskId": task["id"], "id": "p", "url": "https://listener.example/"}
        pushed = await bob.post("/", json=rpc("CreateTaskPushNotificationConfig", config), headers={SESSION: BOB})
        assert "error" in pushed.json()
        own = await bob.post("/", json=rpc("GetTask", {"id": task["id"]}), headers={SESSION: ALICE})
        assert own.json()["result"]["id"] == task["id"]


def token(**claims: object) -> str:
    """A JWT as a front forwards it."""
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "RS256"}, claims)]
    return b".".join([*encoded, b"signature"]).decode()


@pytest.mark.req("AC-S-46")
async def test_a_resolver_may_give_tasks_to_the_user_over_all_sessions():
    async with calling(hosted(identify=agentcore.by_user, front_verifies=True)) as client:
        alice, bob = ({"Authorization": f"Bearer {token(sub=name)}"} for name in ("alice", "bob"))
        made = await client.post("/", json=send(), headers={SESSION: ALICE, **alice})
        asked = rpc("GetTask", {"id": made.json()["result"]["task"]["id"]})
        assert "result" in (await client.post("/", json=asked, headers={SESSION: BOB, **alice})).json()
        assert (await client.post("/", json=asked, headers={SESSION: ALICE, **bob})).json()["error"]["code"] == -32001
        assert (await client.post("/", json=asked)).json()["error"]["code"] == -32000


def test_tasks_of_users_need_tokens_that_somebody_verifies():
    with pytest.raises(ConfigurationError):
        hosted(identify=agentcore.by_user)


@pytest.mark.req("AC-S-47")
async def test_claims_are_believed_only_when_somebody_has_verified_them():
    found: list = []

    async def verify(given: str) -> dict:
        assert given == "good"
        return {"sub": "verified"}

    forged = {"Authorization": f"Bearer {token(sub='pilot', iss='i')}"}
    async with calling(hosted(reporting(found))) as client:
        await client.post("/", json=send(), headers=forged)
    async with calling(hosted(reporting(found), front_verifies=True)) as client:
        await client.post("/", json=send(), headers=forged)
        broken = await client.post("/", json=send(), headers={"Authorization": "Bearer nonsense"})
        assert broken.json()["error"]["code"] == -32000
    async with calling(hosted(reporting(found), verify=verify)) as client:
        await client.post("/", json=send(), headers={"Authorization": "Bearer good"})
        assert (await client.post("/", json=send(), headers=forged)).json()["error"]["code"] == -32000
    calls = [call for call, _, _ in found]
    assert [call.subject for call in calls] == [None, "pilot", "verified"]
    assert (dict(calls[0].claims), calls[1].claims["iss"]) == ({}, "i")
    assert found[0][2].claims == {}


@pytest.mark.req("AC-S-47")
async def test_the_header_with_the_user_is_a_hint_and_no_identity():
    found: list = []
    async with calling(hosted(reporting(found))) as client:
        await client.post("/", json=send(), headers={agentcore.headers.USER_ID: "pilot"})
    call, _, caller = found[0]
    assert (call.user_id, call.subject, caller.is_anonymous) == ("pilot", None, True)


@pytest.mark.req("AC-S-72")
async def test_ids_are_made_at_the_time_of_use(monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []

    class Random:
        def __call__(self, size: int) -> bytes:
            asked.append(size)
            return bytes([len(asked)]) * size

    app = hosted(echo())
    async with calling(app) as client:
        monkeypatch.setattr("os.urandom", Random())
        await post(client, send())
        assert len(asked) >= 3  # worker, task, context: nothing was fetched before


FORK = """
import asyncio, os, random, sys
from dragoman import Agent, agentcore

agent = Agent("x", description="x")
agent.task(lambda ctx: None)

async def start():
    app = agentcore.app(agent)
    await app._inner.start()
    return app

app = asyncio.new_event_loop().run_until_complete(start())
random.seed(0)
if not os.fork():
    os.fork() or random.seed(0)
    ids = [app._inner.runtime._registry.new_id() for _ in range(1000)]
    os.write(1, ("\\n".join(ids) + "\\n").encode())
    os._exit(0)
os.wait()
"""


@pytest.mark.req("AC-S-72")
def test_copies_of_a_started_process_make_different_ids():
    made = subprocess.run([sys.executable, "-c", FORK], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    ids = made.decode().split()
    assert len(ids) == 2_000
    assert len(set(ids)) == len(ids)
