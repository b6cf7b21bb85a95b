"""``dragoman task``: get, cancel, list, subscribe."""

from __future__ import annotations

import pytest

from tests.cli.commands.peer import Peer, refusal, result, task
from tests.cli.commands.program import Dragoman, finish, read_until

Where = tuple[str, ...]


@pytest.mark.req("A2ACLI_TASK_GET_001", "A2ACLI_SEND_004")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_history_is_asked_for_and_artifacts_are_always_there(dragoman: Dragoman, peer: Peer, binding: str) -> None:
    said = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    whole = task(artifacts=[{"artifactId": "a-1", "name": "Quote", "parts": [{"text": "40"}]}], history=[said])
    peer.play = lambda seen: result(seen, whole)

    plain = dragoman.inside("task", "get", "t-1", "-a", peer.url, "--transport", binding)
    full = dragoman.inside("task", "get", "t-1", "-a", peer.url, "--transport", binding, "--history", "2")

    assert "historyLength" not in peer.calls[0].params
    assert str(peer.calls[1].params["historyLength"]) == "2"
    assert "Artifact: a-1 (Quote)\n" in plain.out
    assert "Text:\n  40\n\n" in plain.out
    assert "History:" not in plain.out
    assert full.out.endswith("History:\n  USER m-1:\n    hello\n\n")
    assert dragoman.inside("task", "get", "t-1", "--no-artifacts").status == 2


@pytest.mark.req("A2ACLI_TASK_CANCEL_001", "A2ACLI_TX_004")
def test_a_task_is_canceled_and_again_without_harm(dragoman: Dragoman, at: Where) -> None:
    running = dragoman("send", *at, "--async", "!slow 60s").field("Task")

    first = dragoman("task", "cancel", running, *at)
    second = dragoman("task", "cancel", running, *at)

    assert (first.status, first.field("State")) == (0, "CANCELED")
    assert (second.status, second.field("State")) == (0, "CANCELED")
    assert f"Warning: task {running} is CANCELED" in first.err


@pytest.mark.req("A2ACLI_TASK_CANCEL_001", "A2ACLI_OUT_004")
def test_a_task_that_is_over_cannot_be_canceled(dragoman: Dragoman, at: Where) -> None:
    over = dragoman("send", *at, "hello").field("Task")

    done = dragoman("task", "cancel", over, *at, "-o", "json")

    assert (done.status, done.error["code"]) == (1, "TaskNotCancelableError")
    assert done.error["hint"].startswith(f"dragoman task get {over} -a ")


@pytest.mark.req("A2ACLI_TASK_CANCEL_001")
def test_cancelling_sends_its_metadata(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task(state="CANCELED"))

    dragoman.inside("task", "cancel", "t-1", "-a", peer.url, "--metadata", '{"why": "late"}')

    assert peer.calls[0].params["metadata"] == {"why": "late"}


@pytest.mark.req("A2ACLI_TASK_LIST_001", "A2ACLI_OUT_002", "A2ACLI_OUT_003", "A2ACLI_TX_004")
def test_tasks_are_listed_by_pages_and_filters(dragoman: Dragoman, at: Where) -> None:
    first = dragoman.inside("send", *at, "!input one?")
    context = first.field("Context")
    for text in ("two", "three"):
        dragoman.inside("send", *at, "--context-id", context, text)
    where = (*at, "--context-id", context)

    page = dragoman.inside("task", "list", *where, "--page-size", "2", "-o", "json").json
    rest = dragoman.inside("task", "list", *where, "--page-token", page["nextPageToken"], "-o", "json").json
    merged = dragoman.inside("task", "list", *where, "--page-size", "1", "--all", "-o", "json").json
    lines = dragoman.inside("task", "list", *where, "--all", "--page-size", "2", "--stream", "-o", "json").lines
    asking = dragoman.inside("task", "list", *where, "--status", "input-required")
    limited = dragoman.inside("task", "list", *where, "--limit", "2", "-o", "json").json

    assert (len(page["tasks"]), len(rest["tasks"]), page["totalSize"]) == (2, 1, 3)
    assert [item["id"] for item in merged["tasks"]] == [item["id"] for item in [*page["tasks"], *rest["tasks"]]]
    assert merged["nextPageToken"] == ""
    assert [line["id"] for line in lines] == [item["id"] for item in merged["tasks"]]
    assert asking.field("Task") == first.field("Task")
    assert asking.out.count("Task: ") == 1
    assert len(limited["tasks"]) == 2


@pytest.mark.req("A2ACLI_TASK_LIST_001")
def test_filters_go_over_the_wire(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0})

    done = dragoman.inside(
        *("task", "list", "-a", peer.url, "--status", "TASK_STATE_FAILED", "--context-id", "c-1"),
        *("--since", "2026-03-04T09:00:00Z", "--history", "0", "--with-artifacts"),
    )

    assert peer.calls[0].params == {
        "status": "TASK_STATE_FAILED",
        "contextId": "c-1",
        "statusTimestampAfter": "2026-03-04T09:00:00.000Z",
        "historyLength": 0,
        "includeArtifacts": True,
    }
    assert (done.status, done.out) == (0, "")


@pytest.mark.req("A2ACLI_TASK_SUBSCRIBE_001", "A2ACLI_TX_004")
def test_a_second_process_joins_a_running_task(dragoman: Dragoman, at: Where) -> None:
    process = dragoman.start("send", *at, "-o", "json", "--stream", "!stream 6 300ms")
    before = read_until(process, b"Context: ")
    running = before.decode().partition("Task: ")[2].splitlines()[0]

    joined = dragoman.inside("task", "subscribe", running, *at, "--stream", "-o", "json")
    sender = finish(process, before)

    assert "task" in joined.lines[0]
    assert joined.lines[-1] == sender.lines[-1]


@pytest.mark.req("A2ACLI_TASK_SUBSCRIBE_001", "A2ACLI_TASK_SUBSCRIBE_002")
def test_without_events_the_final_task_is_shown_whole(dragoman: Dragoman, here: Where) -> None:
    running = dragoman.inside("send", *here, "--async", "!stream 5 400ms").field("Task")

    done = dragoman.inside("task", "subscribe", running, *here, "-o", "json")

    assert done.json["status"]["state"] == "TASK_STATE_COMPLETED"
    texts = [part["text"] for artifact in done.json["artifacts"] for part in artifact["parts"]]
    assert "".join(texts) == "".join(f"chunk {number} of 5\n" for number in range(1, 6))


@pytest.mark.req("A2ACLI_TASK_SUBSCRIBE_001", "A2ACLI_VER_003")
def test_there_is_nothing_to_follow_when_a_task_is_over_or_nothing_streams(
    dragoman: Dragoman, at: Where, peer: Peer
) -> None:
    over = dragoman("send", *at, "hello").field("Task")
    peer.reset(streaming=False)

    late = dragoman("task", "subscribe", over, *at, "--stream", "-o", "json")
    silent = dragoman("task", "subscribe", "t-1", "-a", peer.url, "-o", "json")

    for done, code in ((late, {-32004, 400, 9}), (silent, {None})):
        assert (done.status, done.error["code"]) == (1, "UnsupportedOperationError")
        assert done.error["a2aCode"] in code
        assert done.error["hint"].startswith("dragoman task get ")
    assert peer.calls == []


@pytest.mark.req("A2ACLI_TASK_GET_001", "A2ACLI_CLI_001")
def test_the_task_may_be_named_by_option_and_two_names_are_too_many(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: refusal(seen, -32001, "TASK_NOT_FOUND", "no", 404)

    dragoman.inside("task", "get", "--task-id", "t-5", "-a", peer.url)
    both = dragoman.inside("task", "get", "t-1", "--task-id", "t-2", "-a", peer.url)
    none = dragoman.inside("task", "get", "-a", peer.url)

    assert peer.calls[0].params["id"] == "t-5"
    assert (both.status, none.status, len(peer.calls)) == (2, 2, 1)
