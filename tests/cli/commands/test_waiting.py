"""Waiting: when it ends, how often is asked, and what an interruption leaves."""

from __future__ import annotations

import itertools
import shlex
import signal
import time

import pytest

from tests.cli.commands.peer import Answer, Peer, Seen, events, result, status, task
from tests.cli.commands.program import Dragoman, interrupt

Where = tuple[str, ...]
QUICK = ("--poll-interval", "100ms")


@pytest.mark.req("A2ACLI_TASK_POLL_001", "A2ACLI_TASK_GET_001")
def test_a_task_is_asked_for_once_or_until_it_settles(dragoman: Dragoman, peer: Peer) -> None:
    peer.reset(streaming=False)
    peer.play = lambda seen: result(seen, task(state="WORKING" if len(peer.calls) % 4 else "COMPLETED"))

    once = dragoman("task", "get", "t-1", "-a", peer.url, "-o", "json")
    count = len(peer.calls)
    waited = dragoman("task", "get", "t-1", "-a", peer.url, "-o", "json", "--wait", *QUICK)

    assert (count, once.json["status"]["state"]) == (1, "TASK_STATE_WORKING")
    assert (len(peer.calls), waited.json["status"]["state"]) == (4, "TASK_STATE_COMPLETED")


@pytest.mark.req("A2ACLI_TASK_POLL_002")
def test_the_interval_is_kept_and_the_time_is_limited(dragoman: Dragoman, peer: Peer) -> None:
    peer.reset(streaming=False)
    moments: list[float] = []

    def play(seen: Seen) -> Answer:
        moments.append(time.monotonic())
        return result(seen, task(state="WORKING"))

    peer.play = play
    done = dragoman(
        *(
            "task",
            "get",
            "t-1",
            "-a",
            peer.url,
            "-o",
            "json",
            "--wait",
            "--poll-interval",
            "300ms",
            "--timeout",
            "1500ms",
        )
    )

    assert (done.status, done.error["code"], done.error["a2aCode"]) == (5, "A2ACLI_ERR_TIMEOUT", None)
    assert done.error["message"] == "task t-1 is still WORKING after 1.5s"
    assert done.error["hint"] == f"dragoman task get t-1 -a {peer.url} --wait"
    assert 3 <= len(moments) <= 6
    assert all(after - before > 0.25 for before, after in itertools.pairwise(moments[1:]))


@pytest.mark.req("A2ACLI_TASK_POLL_002", "A2ACLI_INTERACT_004", "A2ACLI_EXIT_001")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_wait_and_not_the_task(
    dragoman: Dragoman, here: Where, number: signal.Signals, code: int
) -> None:
    process = dragoman.start("send", *here, "-o", "json", "!slow 2s")

    done = interrupt(process, number)

    assert (done.status, done.error["code"]) == (code, "DRAGOMAN_ERR_INTERRUPTED")
    resume = next(line for line in done.err.splitlines() if line.startswith("Resume: "))
    assert "Cancel: dragoman task cancel " in done.err
    again = dragoman(*shlex.split(resume.partition(": ")[2])[1:], "-o", "json")
    assert again.json["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.req("A2ACLI_TASK_POLL_002")
def test_a_failure_that_may_pass_is_tried_again(dragoman: Dragoman, peer: Peer) -> None:
    peer.reset(streaming=False)
    peer.play = lambda seen: (
        Answer(503, b"busy", "text/plain")
        if len(peer.calls) == 2
        else result(seen, task(state="WORKING" if len(peer.calls) < 3 else "COMPLETED"))
    )

    done = dragoman.inside("task", "get", "t-1", "-a", peer.url, "-o", "json", "--wait", *QUICK)

    assert done.json["status"]["state"] == "TASK_STATE_COMPLETED"
    assert "trying again" in done.err


@pytest.mark.req("A2ACLI_TASK_POLL_003", "A2ACLI_EXIT_002")
@pytest.mark.parametrize("state", ["INPUT_REQUIRED", "AUTH_REQUIRED"])
@pytest.mark.parametrize("streaming", [True, False])
def test_an_interruption_ends_the_wait_at_once(dragoman: Dragoman, peer: Peer, state: str, streaming: bool) -> None:
    peer.reset(streaming=streaming)
    peer.play = lambda seen: (
        events(seen, {"task": task(state="WORKING")}, status(state), cut=True)
        if seen.operation == "SendStreamingMessage"
        else result(seen, {"task": task(state=state)})
    )

    done = dragoman.inside("send", "-a", peer.url, "hello", "--timeout", "10s")

    assert (done.status, done.field("State")) == (0, state)
    assert f"Warning: task t-1 is {state}\n" in done.err
    assert done.field("Resume") == f'dragoman send -a {peer.url} --task-id t-1 "<reply>"'
    assert len(peer.calls) == 1


@pytest.mark.req("A2ACLI_TASK_POLL_003")
@pytest.mark.parametrize("state", ["TASK_STATE_UNSPECIFIED", 77])
def test_a_state_that_says_nothing_is_waited_through_and_shown_as_received(
    dragoman: Dragoman, peer: Peer, state: object
) -> None:
    peer.reset(streaming=False)
    strange = {"id": "t-1", "contextId": "c-1", "status": {"state": state}}
    peer.play = lambda seen: result(seen, strange if len(peer.calls) < 4 else task())

    shown = dragoman.inside("task", "get", "t-1", "-a", peer.url)
    waited = dragoman.inside("task", "get", "t-1", "-a", peer.url, "--wait", *QUICK)

    assert shown.field("State") == str(state).removeprefix("TASK_STATE_")
    assert waited.field("State") == "COMPLETED"
    assert len(peer.calls) == 4


@pytest.mark.req("A2ACLI_TASK_POLL_004")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_stream_that_breaks_for_good_is_followed_by_polling(dragoman: Dragoman, peer: Peer, binding: str) -> None:
    def play(seen: Seen) -> Answer:
        if seen.operation == "SendStreamingMessage":
            return events(seen, {"task": task(state="SUBMITTED")}, status("WORKING"), cut=True)
        if seen.operation == "SubscribeToTask":
            return Answer(503, b"", "text/plain")
        return result(seen, task(artifacts=[{"artifactId": "a", "parts": [{"text": "all of it"}]}]))

    peer.play = play
    done = dragoman.inside("send", "-a", peer.url, "--transport", binding, "-o", "json", "hello", *QUICK)

    assert done.json["task"]["artifacts"][0]["parts"] == [{"text": "all of it"}]
    assert peer.operations.count("SendStreamingMessage") == 1
    assert "SendMessage" not in peer.operations
    assert peer.operations[-1] == "GetTask"


@pytest.mark.req("A2ACLI_TASK_POLL_004", "A2ACLI_TASK_SUBSCRIBE_002")
def test_a_cut_stream_is_joined_again_and_its_lines_stay_whole(dragoman: Dragoman, peer: Peer) -> None:
    def play(seen: Seen) -> Answer:
        working = {"task": task(state="WORKING")}
        if peer.operations.count("SubscribeToTask") < 2:
            return events(seen, working, cut=True)
        return events(seen, working, status("COMPLETED"))

    peer.play = play
    done = dragoman("send", "-a", peer.url, "-o", "json", "--stream", "hello")

    assert peer.operations == ["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask"]
    assert [next(iter(line)) for line in done.lines] == ["task", "task", "task", "statusUpdate"]
    assert done.err.count("joined again") == 2


@pytest.mark.req("A2ACLI_AUTH_011")
def test_an_authorization_from_elsewhere_can_be_waited_for(dragoman: Dragoman, at: Where) -> None:
    asked = dragoman("send", *at, "!auth May I?")
    assert asked.field("State") == "AUTH_REQUIRED"
    follow = dragoman.start(*shlex.split(asked.field("Follow"))[1:], "--poll-interval", "100ms", "-o", "json")

    dragoman("send", *at, "--task-id", asked.field("Task"), "granted")

    out, _ = follow.communicate(timeout=20)
    assert b"TASK_STATE_COMPLETED" in out


@pytest.mark.req("A2ACLI_AUTH_011")
def test_a_task_that_goes_on_after_a_grant_out_of_band_is_followed_to_its_end_without_a_message(
    dragoman: Dragoman, peer: Peer
) -> None:
    def play(seen: Seen) -> Answer:
        if seen.operation == "SubscribeToTask":
            return events(seen, {"task": task(state="AUTH_REQUIRED")}, status("WORKING"), status("COMPLETED"))
        return result(seen, task(state="AUTH_REQUIRED"))

    peer.play = play
    done = dragoman("task", "get", "t-1", "-a", peer.url, "--wait", "--until", "terminal", "-o", "json")

    assert done.json["status"]["state"] == "TASK_STATE_COMPLETED"
    assert not {"SendMessage", "SendStreamingMessage"} & set(peer.operations)
