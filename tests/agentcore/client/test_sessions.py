"""Sessions: ids, which call goes where, export, stopping."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import msgspec
import pytest

from dragoman.agentcore import (
    AwsCredentials,
    Derivation,
    SessionBusy,
    SessionState,
    SharedSessionError,
    in_session,
)
from dragoman.agentcore.sessions import Sessions, check_session_id
from dragoman.errors import ConfigurationError, TaskNotFoundError
from tests.agentcore.client.front import (
    CALLS,
    CARD,
    KEYS,
    ONE,
    OTHER,
    SESSION,
    STOP,
    busy,
    call,
    choose,
    done,
    refusal,
    runtime_card,
    sessions,
)
from tests.client.words import artifact, status, task
from tests.http.peer import Answer, Peer, Received, as_json, error, peer, plain, result, stream


@pytest.fixture
async def front() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


@pytest.mark.req("AC-C-10")
async def test_one_fresh_session_is_on_the_card_and_on_every_call(front: Peer) -> None:
    front.on("GET", CARD, as_json(runtime_card(front))).on("POST", CALLS, done())

    async with call(front, card=True) as client:
        await client.send("hi")
        await client.send("again")

    assert len(set(sessions(front))) == 1
    assert len(front.received) == 3
    assert str(uuid.UUID(sessions(front)[0], version=4)) == client.session_id


@pytest.mark.req("AC-C-10")
async def test_every_client_has_a_session_of_its_own(front: Peer) -> None:
    async with call(front) as one, call(front) as other:
        assert one.session_id != other.session_id


@pytest.mark.req("AC-C-11")
@pytest.mark.parametrize("session_id", ["x" * 32, "x" * 257, "x" * 20 + " " + "x" * 20, "ü" * 40, "x" * 40 + "\n"])
def test_ids_that_the_service_refuses_are_refused_here(front: Peer, session_id: str) -> None:
    with pytest.raises(ConfigurationError):
        call(front, session_id=session_id)


@pytest.mark.req("AC-C-11")
@pytest.mark.parametrize(("session_id", "warned"), [("x" * 33, False), ("x" * 100, False), ("x" * 120, True)])
def test_long_ids_are_warned_of(session_id: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert check_session_id(session_id) == session_id
    assert bool(caplog.records) == warned


@pytest.mark.req("AC-C-11")
@pytest.mark.parametrize("session_id", ["_" + "x" * 40, "x" * 40 + ".y", "x/" * 20])
def test_odd_characters_are_warned_of(session_id: str, caplog: pytest.LogCaptureFixture) -> None:
    check_session_id(session_id)

    assert caplog.records


@pytest.mark.req("AC-C-12")
async def test_the_session_that_the_service_allocates_is_adopted(front: Peer) -> None:
    front.on("POST", CALLS, result({"task": task("COMPLETED")}, **{SESSION: ONE}), done())

    async with call(front, session_id="") as client:
        assert client.session_id == ""
        made = await client.send("hi")
        await client.send("again")

    assert sessions(front) == ["", ONE]
    assert (client.session_id, client.session_of(made)) == (ONE, ONE)


@pytest.mark.req("AC-C-12")
async def test_another_session_than_the_one_sent_is_adopted_and_logged(
    front: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    front.on("POST", CALLS, result({"task": task("WORKING")}, **{SESSION: OTHER}), result(task("WORKING")))

    async with call(front, session_id=ONE) as client:
        made = await client.send("hi")
        await client.get_task(made)

    assert sessions(front) == [ONE, OTHER]
    assert client.session_id == OTHER
    assert any(OTHER in record.getMessage() for record in caplog.records)


@pytest.mark.req("AC-C-12")
async def test_an_answer_on_a_stream_names_the_session_too(front: Peer) -> None:
    front.on("POST", CALLS, stream({"task": task("COMPLETED")}, **{SESSION: ONE}))

    async with call(front, session_id="") as client:
        [event async for event in client.stream("hi")]

    assert client.session_id == ONE


def named_task(request: Received) -> Answer:
    """A task and a context named for the session and the message."""
    params = request.json["params"]
    if request.json["method"] != "SendMessage":
        task_id = params.get("id") or params.get("taskId")
        return result({"id": task_id, "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}})
    letter = "a" if request.headers[SESSION] == ONE else "b"
    text = params["message"]["parts"][0]["text"]
    return result({"task": {**task("WORKING", f"{letter}-{text}"), "contextId": f"context-{letter}"}})


@pytest.mark.req("AC-C-13")
async def test_calls_about_a_task_or_a_context_go_to_its_session(front: Peer) -> None:
    front.on("POST", CALLS, choose(named_task))

    async with call(front, session_id=ONE) as client:
        await client.send("1")
        await client.send("1", headers=in_session(OTHER))
        front.received.clear()
        for letter in "abab":
            await client.get_task(f"{letter}-1")
            await client.cancel(f"{letter}-1")
            await client.send("2", context_id=f"context-{letter}")
            await client.send("3", task_id=f"{letter}-1")

    assert sessions(front) == [*[ONE] * 4, *[OTHER] * 4] * 2


@pytest.mark.req("AC-C-13")
async def test_subscriptions_and_push_configurations_go_to_the_session_of_the_task(front: Peer) -> None:
    front.on("POST", CALLS, result({"task": task("WORKING", "t1")}))

    async with call(front, session_id=ONE) as client:
        await client.send("hi", headers=in_session(OTHER))
        front._routes.clear()
        front.on("POST", CALLS, stream({"task": task("COMPLETED", "t1")}))
        [event async for event in client.subscribe("t1")]
        front._routes.clear()
        front.on("POST", CALLS, result({"taskId": "t1", "id": "p", "url": "https://h.example"}))
        await client.create_push_config("t1", "https://h.example")
        await client.get_push_config("t1", "p")
        await client.delete_push_config("t1", "p")

    assert sessions(front) == [OTHER] * 5


@pytest.mark.req("AC-C-13")
async def test_a_task_that_a_stream_told_of_is_remembered(front: Peer) -> None:
    front.on("POST", CALLS, stream(artifact("x", task_id="t7"), status("INPUT_REQUIRED", task_id="t7")))

    async with call(front, session_id=ONE) as client:
        [event async for event in client.stream("hi", headers=in_session(OTHER))]

    assert client.session_of("t7") == OTHER


@pytest.mark.req("AC-C-14")
async def test_sessions_can_be_taken_up_by_another_process(front: Peer) -> None:
    front.on("POST", CALLS, choose(named_task))

    async with call(front, session_id=ONE) as client:
        await client.send("1")
        await client.send("1", headers=in_session(OTHER))
        kept = msgspec.json.encode(client.export_sessions())
    state = msgspec.json.decode(kept, type=SessionState)
    front.received.clear()
    async with call(front, state=state) as client:
        await client.send("new")
        await client.get_task("b-1")
        await client.send("more", context_id="context-b")

    assert sessions(front) == [ONE, OTHER, OTHER]
    assert state.tasks == {"a-1": ONE, "b-1": OTHER}
    assert KEYS.access_key.encode() not in kept


@pytest.mark.req("AC-C-14")
async def test_finished_tasks_are_not_exported(front: Peer) -> None:
    front.on("POST", CALLS, done())

    async with call(front) as client:
        await client.send("hi")

    assert client.export_sessions().tasks == {}


@pytest.mark.req("AC-C-14")
async def test_a_session_is_for_one_identity_unless_sharing_is_allowed(front: Peer) -> None:
    bob = AwsCredentials("AKIDLEDGERTEST000002", KEYS.secret_key)

    async with call(front, session_id=ONE):
        async with call(front, session_id=ONE):
            pass
        with pytest.raises(SharedSessionError):
            async with call(front, session_id=ONE, credentials=bob):
                raise AssertionError("connected")
        async with call(front, session_id=ONE, credentials=bob, share_sessions=True):
            pass
    async with call(front, session_id=ONE, credentials=bob):
        pass


@pytest.mark.req("AC-C-14")
async def test_exported_sessions_are_for_the_same_identity(front: Peer) -> None:
    async with call(front, identity="alice") as client:
        state = client.export_sessions()

    with pytest.raises(SharedSessionError):
        async with call(front, identity="bob", state=state):
            raise AssertionError("connected")
    async with call(front, identity="alice", state=state) as client:
        assert client.session_id == state.session_id


@pytest.mark.req("AC-C-15")
async def test_a_session_is_stopped_with_its_header(front: Peer) -> None:
    front.on("POST", STOP, as_json({}))

    async with call(front, session_id=ONE, qualifier="prod") as client:
        await client.stop_session()
        await client.stop_session(OTHER)

    assert front.targets() == [f"POST {STOP}?qualifier=prod"] * 2
    assert sessions(front) == [ONE, OTHER]
    assert "clientToken" in front.received[0].json


@pytest.mark.req("AC-C-15")
async def test_a_session_that_is_not_there_counts_as_stopped(front: Peer) -> None:
    front.on("POST", STOP, refusal(404, -32051, "Resource not found", id="null"))

    async with call(front) as client:
        await client.stop_session()

    assert len(front.received) == 1


@pytest.mark.req("AC-C-15")
async def test_stopping_waits_for_a_busy_session_and_tells_when_it_stays_busy(front: Peer) -> None:
    conflict = as_json({"message": "Busy"}, 409, x_amzn_errortype="RetryableConflictException")
    front.on("POST", STOP, conflict, as_json({}), conflict)

    async with call(front) as client:
        await client.stop_session()
        with pytest.raises(SessionBusy):
            await client.stop_session()

    assert front.received[0].body == front.received[1].body


@pytest.mark.req("AC-C-15")
@pytest.mark.parametrize("answer", [as_json({}), plain(500, b"")])
async def test_a_session_can_be_stopped_at_the_end(front: Peer, answer: Answer) -> None:
    front.on("POST", STOP, answer).on("POST", CALLS, done())

    async with call(front, stop_on_close=True) as client:
        await client.send("hi")

    assert f"POST {STOP}" in front.targets()


@pytest.mark.req("AC-C-16")
def test_derived_ids_are_stable_and_distinct() -> None:
    derivation = Derivation(b"k" * 16, "alice")

    one = derivation.session_id("c-1")
    assert one == Derivation(b"k" * 16).session_id("c-1", caller="alice")
    assert len({one, derivation.session_id("c-2"), derivation.session_id("c-1", caller="bob")}) == 3
    assert Derivation(b"k" * 16, "a").session_id("bc") != Derivation(b"k" * 16, "ab").session_id("c")
    assert (len(one), set(one) <= set("0123456789abcdef")) == (64, True)
    assert "kkkk" not in repr(derivation)


@pytest.mark.req("AC-C-16")
async def test_the_session_of_a_context_can_be_derived(front: Peer) -> None:
    front.on("POST", CALLS, done())
    derivation = Derivation(b"k" * 16, "alice")

    async with call(front, derivation=derivation) as client:
        await client.send("hi", context_id="c-5")
        await client.send("without a context")

    assert sessions(front)[0] == derivation.session_id("c-5")
    made = front.received[1].json["params"]["message"]["contextId"]
    assert sessions(front)[1] == derivation.session_id(made)


@pytest.mark.req("AC-C-44")
async def test_a_missing_task_of_another_session_says_where_tasks_live(front: Peer) -> None:
    front.on("POST", CALLS, result({"task": task("WORKING")}), error(-32001, "Task not found"))

    async with call(front, session_id=ONE) as client:
        await client.send("hi")
        with pytest.raises(TaskNotFoundError, match=f"memory of its session; this one was made in session {ONE}"):
            await client.get_task("t1", headers=in_session(OTHER))
        with pytest.raises(TaskNotFoundError, match="memory of its session"):
            await client.get_task("t2")


@pytest.mark.req("AC-C-44")
async def test_a_missing_task_of_a_stopped_session_says_so(front: Peer) -> None:
    front.on("POST", CALLS, result({"task": task("WORKING")}), error(-32001, "Task not found"))
    front.on("POST", STOP, as_json({}))

    async with call(front, session_id=ONE) as client:
        await client.send("hi")
        await client.stop_session()
        with pytest.raises(TaskNotFoundError, match=r"memory of its session, and session .* was stopped"):
            await client.get_task("t1")


def test_what_is_remembered_is_bounded() -> None:
    known = Sessions(ONE, limit=3)
    for n in range(10):
        known.learn(OTHER, task_id=f"t{n}", context_id=f"c{n}")

    assert [known.choose(f"t{n}") for n in (0, 9)] == [ONE, OTHER]
    assert len(known.export().tasks) == 3


async def test_a_session_id_of_a_call_is_checked(front: Peer) -> None:
    async with call(front) as client:
        with pytest.raises(ConfigurationError):
            await client.send("hi", headers={SESSION: "short"})

    assert front.received == []


async def test_a_session_that_was_stopped_is_entered_by_one_call_first(front: Peer) -> None:
    front.on("POST", STOP, as_json({})).on("POST", CALLS, done(), busy(), done())

    async with call(front) as client:
        await client.send("hi")
        await client.stop_session()
        await client.send("hi")

    assert len(front.received) == 4
