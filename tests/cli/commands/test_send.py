"""``dragoman send``: what goes out, and what is shown of the answer."""

from __future__ import annotations

import base64
import json
import uuid

import pytest

from tests.cli.commands.peer import Answer, Peer, Seen, events, refusal, result, status, task
from tests.cli.commands.program import Dragoman

Where = tuple[str, ...]


@pytest.mark.req("A2ACLI_SEND_001", "A2ACLI_INTERACT_003")
def test_a_message_begins_an_interaction_with_no_id_of_our_own_making(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: events(seen, {"task": task()})

    done = dragoman("send", "-a", peer.url, "hello")

    (sent,) = peer.calls
    assert sent.message["role"] == "ROLE_USER"
    assert sent.message["parts"] == [{"text": "hello", "mediaType": "text/plain"}]
    assert uuid.UUID(sent.message["messageId"])
    assert not {"taskId", "contextId"} & set(sent.message)
    assert (done.status, done.field("State")) == (0, "COMPLETED")


@pytest.mark.req("A2ACLI_SEND_002", "A2ACLI_OUT_006", "A2ACLI_TX_004")
def test_it_waits_for_the_end_unless_told_not_to(dragoman: Dragoman, at: Where) -> None:
    waited = dragoman("send", *at, "-o", "json", "!slow 300ms")
    spellings = ("--async", "--return-immediately", "--no-wait")
    at_once = [dragoman.inside("send", *at, "-o", "json", spelling, "!slow 300ms") for spelling in spellings]

    assert waited.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    for done in at_once:
        assert done.json["task"]["status"]["state"] == "TASK_STATE_WORKING"
        assert done.json["task"]["id"]
        assert done.json["task"]["contextId"]


@pytest.mark.req("A2ACLI_SEND_002", "A2ACLI_OUT_006")
def test_without_waiting_the_wire_says_so_and_text_says_how_to_go_on(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, {"task": task(state="SUBMITTED")})

    done = dragoman("send", "-a", peer.url, "--async", "hello")

    assert peer.calls[0].params["configuration"] == {"returnImmediately": True}
    assert (done.field("Task"), done.field("Context"), done.field("State")) == ("t-1", "c-1", "SUBMITTED")
    assert done.field("Resume") == f"dragoman task get t-1 -a {peer.url} --wait"


@pytest.mark.req("A2ACLI_SEND_003", "A2ACLI_OUT_003", "A2ACLI_TX_004")
def test_a_stream_is_shown_event_by_event(dragoman: Dragoman, at: Where) -> None:
    done = dragoman("send", *at, "-o", "json", "--stream", "!stream 3 10ms")

    kinds = [next(iter(line)) for line in done.lines]
    assert kinds == ["task", "artifactUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]
    assert done.lines[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done.status == 0


@pytest.mark.req("A2ACLI_SEND_003", "A2ACLI_VER_003")
def test_where_there_is_no_streaming_the_task_is_polled_and_each_change_is_a_line(
    dragoman: Dragoman, peer: Peer
) -> None:
    peer.reset(streaming=False)
    states = iter(["WORKING", "WORKING", "COMPLETED"])

    def play(seen: Seen) -> Answer:
        return result(
            seen, {"task": task(state="WORKING")} if seen.operation == "SendMessage" else task(state=next(states))
        )

    peer.play = play
    done = dragoman("send", "-a", peer.url, "-o", "json", "--stream", "--poll-interval", "100ms", "hello")

    assert peer.operations == ["SendMessage", "GetTask", "GetTask", "GetTask"]
    assert [line["task"]["status"]["state"] for line in done.lines] == ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
    assert "does not stream" in done.err
    assert done.status == 0


@pytest.mark.req("A2ACLI_SEND_003", "A2ACLI_OUT_003")
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_stream_that_is_a_lone_message_ends_well(dragoman: Dragoman, at: Where, output: str) -> None:
    done = dragoman("send", *at, "-o", output, "--stream", "!message good day")

    assert done.status == 0
    if output == "json":
        assert [line["message"]["parts"] for line in done.lines] == [[{"text": "good day"}]]
    else:
        assert done.out.startswith("Event: message\nMessage: ")
        assert done.out.endswith("Text:\n  good day\n\n")


@pytest.mark.req("A2ACLI_SEND_003")
def test_a_card_that_promises_too_much_costs_nothing_but_a_second_try_with_the_same_id(
    dragoman: Dragoman, peer: Peer
) -> None:
    def play(seen: Seen) -> Answer:
        if seen.operation == "SendStreamingMessage":
            return refusal(seen, -32004, "UNSUPPORTED_OPERATION", "No streams here")
        return result(seen, {"task": task()})

    peer.play = play
    done = dragoman("send", "-a", peer.url, "hello")

    assert peer.operations == ["SendStreamingMessage", "SendMessage"]
    assert peer.calls[0].message["messageId"] == peer.calls[1].message["messageId"]
    assert done.status == 0


@pytest.mark.req("A2ACLI_SEND_004", "A2ACLI_OUT_005", "A2ACLI_TX_004")
def test_no_part_of_an_artifact_is_left_out(dragoman: Dragoman, at: Where) -> None:
    done = dragoman("send", *at, "!all forty chairs")

    assert "File: digits.bin (application/octet-stream, 10 bytes)\n" in done.out
    assert "File: spec.pdf (application/pdf, https://example.com/spec.pdf)\n" in done.out
    assert "Text:\n  forty chairs\n\n" in done.out
    assert 'Data:\n  {\n    "total": 2960\n  }\n\n' in done.out
    assert "0123456789" not in done.out


@pytest.mark.req("A2ACLI_SEND_005", "A2ACLI_SEND_006")
def test_parts_keep_the_order_of_the_command_line_and_their_media_types(dragoman: Dragoman, peer: Peer) -> None:
    (dragoman.folder / "x.bin").write_bytes(b"\x00\xff")
    (dragoman.folder / "order.json").write_text('{"chairs": 40}')

    dragoman(
        *("send", "-a", peer.url, "--async", "--text", "a", "--file", "x.bin", "--media-type", "application/pdf"),
        *("--data-part", "order.json", "--text-part", "b", "--media-type", "text/markdown", "zero"),
        *("--file-part", "https://cdn.example.com/spec%20one.pdf", "--data", "[null]", "--text=--media-type"),
    )

    assert peer.calls[0].message["parts"] == [
        {"text": "zero", "mediaType": "text/plain"},
        {"text": "a", "mediaType": "text/plain"},
        {"raw": base64.b64encode(b"\x00\xff").decode(), "filename": "x.bin", "mediaType": "application/pdf"},
        {"data": {"chairs": 40}, "mediaType": "application/json"},
        {"text": "b", "mediaType": "text/markdown"},
        {
            "url": "https://cdn.example.com/spec%20one.pdf",
            "filename": "spec one.pdf",
            "mediaType": "application/pdf",
        },
        {"data": [None], "mediaType": "application/json"},
        {"text": "--media-type", "mediaType": "text/plain"},
    ]


@pytest.mark.req("A2ACLI_SEND_006")
def test_data_and_text_can_come_from_standard_input_when_asked_for(dragoman: Dragoman, peer: Peer) -> None:
    dragoman("send", "-a", peer.url, "--async", "--data", "-", stdin=b'{"big": 9007199254740993}')
    dragoman("send", "-a", peer.url, "--async", "-", stdin="größer\n".encode())

    assert peer.calls[0].message["parts"][0]["data"] == {"big": 9007199254740993}
    assert peer.calls[1].message["parts"][0]["text"] == "größer\n"


@pytest.mark.req("A2ACLI_SEND_005", "A2ACLI_SEND_006", "A2ACLI_EXIT_001")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--media-type", "a/b", "--text", "x"), "behind the part"),
        (("x", "--media-type", "a/b", "--media-type", "a/c"), "one --media-type"),
        (("x", "--media-type", "nonsense"), "media type"),
        (("--data", "{"), "no JSON"),
        (("-", "--data", "-"), "can be used once"),
        ((), "nothing to send"),
        (("x", "--wait", "--async"), "exclude each other"),
        (("x", "--stream", "--async"), "exclude each other"),
        (("x", "--poll-interval", "0"), "100ms or more"),
        (("x", "--time", "3"), "--time"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_and_sends_nothing(
    dragoman: Dragoman, peer: Peer, arguments: tuple[str, ...], words: str
) -> None:
    done = dragoman.inside("send", "-a", peer.url, "-o", "json", *arguments, stdin=b"x")

    assert (done.status, done.error["code"]) == (2, "A2ACLI_ERR_USAGE")
    assert words in done.error["message"]
    assert peer.calls == []


@pytest.mark.req("A2ACLI_SEND_006", "A2ACLI_EXIT_001")
def test_a_file_that_cannot_be_read_is_named(dragoman: Dragoman, peer: Peer) -> None:
    done = dragoman("send", "-a", peer.url, "-o", "json", "--file", "missing.pdf")

    assert (done.status, done.error["code"]) == (1, "DRAGOMAN_ERR_FILE")
    assert "missing.pdf" in done.error["message"]
    assert peer.calls == []


@pytest.mark.req("A2ACLI_SEND_001")
def test_metadata_modes_references_and_history_go_where_they_belong(dragoman: Dragoman, peer: Peer) -> None:
    dragoman.inside(
        *("send", "-a", peer.url, "--async", "x", "--metadata", '{"a": 1}', "--message-metadata", '{"b": 2}'),
        *("--accept", "text/plain", "--accept", "image/png", "--reference-task", "t-0", "--history", "0"),
        *("--message-id", "m-7"),
    )

    params = peer.calls[0].params
    assert params["metadata"] == {"a": 1}
    assert params["configuration"] == {
        "acceptedOutputModes": ["text/plain", "image/png"],
        "historyLength": 0,
        "returnImmediately": True,
    }
    message = params["message"]
    assert (message["metadata"], message["messageId"], message["referenceTaskIds"]) == ({"b": 2}, "m-7", ["t-0"])


@pytest.mark.req("A2ACLI_SEND_001")
def test_a_whole_request_is_sent_from_a_file(dragoman: Dragoman, peer: Peer) -> None:
    request = {"message": {"role": "ROLE_USER", "parts": [{"text": "x"}]}, "metadata": {"a": 1}}
    (dragoman.folder / "request.json").write_text(json.dumps(request))

    done = dragoman.inside("send", "-a", peer.url, "--async", "--request", "request.json")

    assert done.status == 0
    assert peer.calls[0].message["parts"] == [{"text": "x"}]
    assert peer.calls[0].message["messageId"]
    assert peer.calls[0].params["metadata"] == {"a": 1}


@pytest.mark.req("A2ACLI_EXIT_002")
def test_an_answer_about_a_known_task_is_not_taken_for_its_state_before(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: events(
        seen, {"task": task(state="INPUT_REQUIRED")}, status("WORKING"), status("COMPLETED")
    )

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "--task-id", "t-1", "yes")

    assert done.json["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
