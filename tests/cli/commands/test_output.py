"""Text and JSON: what goes to which stream, and what hostile content cannot do."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.cli.commands.peer import Answer, Peer, Seen, events, result, status, task
from tests.cli.commands.program import COMMAND, Dragoman, on_terminal

Where = tuple[str, ...]
HOSTILE = "fine\x1b[2J\x1b]0;owned\x07\nState: COMPLETED\n\nTask: forged\r\x9b31m\u202eevil[red]x[/red]"


def hostile_task() -> dict[str, object]:
    """A task that tries to look like something else."""
    return task(
        id="t\nState: FAILED",
        artifacts=[{"artifactId": "a\x1b[1m", "name": "n\nExit: 0", "parts": [{"text": HOSTILE}]}],
    )


@pytest.mark.req("A2ACLI_OUT_001", "A2ACLI_OUT_005")
def test_a_task_as_text_is_exactly_this(dragoman: Dragoman, peer: Peer) -> None:
    whole = task(
        state="INPUT_REQUIRED",
        artifacts=[
            {
                "artifactId": "q-1",
                "name": "Quote",
                "parts": [{"text": "40 chairs\n"}, {"data": {"total": 2960.0}}, {"raw": "AAA=", "filename": "q.pdf"}],
            }
        ],
    )
    whole["status"] |= {
        "timestamp": "2026-03-04T09:12:44.318Z",
        "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Delivery to\n\nwhich floor?"}]},
    }
    peer.play = lambda seen: result(seen, whole)

    done = dragoman("task", "get", "t-1", "-a", peer.url)

    assert done.out == (
        "Task: t-1\n"
        "Context: c-1\n"
        "State: INPUT_REQUIRED\n"
        "Updated: 2026-03-04T09:12:44.318Z\n"
        "Artifact: q-1 (Quote)\n"
        "File: q.pdf (2 bytes)\n"
        f'Resume: dragoman send -a {peer.url} --task-id t-1 "<reply>"\n'
        "Status message:\n  Delivery to\n  \n  which floor?\n\n"
        "Text:\n  40 chairs\n\n"
        'Data:\n  {\n    "total": 2960.0\n  }\n\n'
    )
    assert done.err == "Warning: task t-1 is INPUT_REQUIRED\n"


@pytest.mark.req("A2ACLI_OUT_005")
def test_a_pipe_and_a_terminal_get_the_same_bytes(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: events(
        seen, {"task": task(artifacts=[{"artifactId": "a", "parts": [{"text": "häé\tx"}]}])}
    )

    piped = dragoman("send", "-a", peer.url, "hello")
    shown = on_terminal(dragoman, "send", "-a", peer.url, "hello", out_apart=True, columns=20)

    assert shown.out == piped.out
    assert "\x1b" not in shown.out
    helps = dragoman("send", "--help").out, on_terminal(dragoman, "send", "--help", out_apart=True, columns=40).out
    assert helps[0] == helps[1]


@pytest.mark.req("A2ACLI_OUT_005", "A2ACLI_OUT_001")
def test_what_an_agent_sends_cannot_pass_for_a_field_nor_move_the_cursor(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, hostile_task())

    done = dragoman.inside("task", "get", "t-1", "-a", peer.url)
    as_json = dragoman.inside("task", "get", "t-1", "-a", peer.url, "-o", "json")

    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("State: ")] == ["State: COMPLETED"]
    assert "Task: t\\nState: FAILED" in lines
    assert "  State: COMPLETED" in lines
    assert "  Task: forged\\r\\x9b31m\\u202eevil[red]x[/red]" in lines
    for text in (done.out, done.err, as_json.out, as_json.err):
        assert not {c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"}
    assert as_json.json["artifacts"][0]["parts"][0]["text"] == HOSTILE


@pytest.mark.req("A2ACLI_OUT_002")
@pytest.mark.parametrize(
    "command",
    [
        ("card", "get"),
        ("send", "hello"),
        ("send", "--async", "hello"),
        ("task", "get", "t-1"),
        ("task", "cancel", "t-1"),
        ("config", "show"),
        ("help",),
        ("help", "task", "get"),
        ("task", "get", "--help"),
        ("--version",),
        ("task", "subscribe", "t-1"),
        ("nonsense",),
        ("task", "get"),
    ],
)
def test_without_stream_json_is_one_document_and_nothing_else(
    dragoman: Dragoman, peer: Peer, command: tuple[str, ...]
) -> None:
    def play(seen: Seen) -> Answer:
        if seen.operation in ("SendStreamingMessage", "SubscribeToTask"):
            return events(seen, {"task": task(state="WORKING")}, status("COMPLETED"))
        return result(seen, {"task": task()} if seen.operation == "SendMessage" else task())

    peer.play = play
    done = dragoman.inside(*command, "-o", "json", env={"A2ACLI_AGENT_CARD": peer.url})

    assert isinstance(done.json, dict | list)
    assert done.out == done.out.strip() + "\n"


@pytest.mark.req("A2ACLI_OUT_002")
def test_a_document_is_on_one_line_when_that_is_asked_for(dragoman: Dragoman, peer: Peer) -> None:
    done = dragoman.inside("card", "get", "-a", peer.url, "-o", "json", "--compact")

    assert (done.out.count("\n"), done.json["name"]) == (1, "Scripted")


@pytest.mark.req("A2ACLI_OUT_003")
def test_lines_are_written_as_the_events_come(dragoman: Dragoman, here: Where) -> None:
    process = dragoman.start("send", *here, "-o", "json", "--stream", "!stream 3 400ms")
    assert process.stdout is not None

    moments = []
    for line in process.stdout:
        assert json.loads(line)
        moments.append(time.monotonic())
    process.communicate(timeout=20)

    assert moments[-1] - moments[1] > 0.7


@pytest.mark.req("A2ACLI_OUT_003", "A2ACLI_OUT_004", "B057")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_stream_that_fails_ends_with_an_error_of_its_own_line(dragoman: Dragoman, peer: Peer, binding: str) -> None:
    def play(seen: Seen) -> Answer:
        if seen.operation == "SendStreamingMessage":
            return events(seen, {"task": task(state="WORKING")}, cut=True)
        return Answer(401, b"")

    peer.play = play
    done = dragoman.inside("send", "-a", peer.url, "--transport", binding, "-o", "json", "--stream", "hello")

    assert "task" in done.lines[0]
    assert done.lines[-1]["error"]["code"] == "A2ACLI_ERR_CREDENTIALS_MISSING"
    assert (done.status, len(done.lines)) == (4, 2)


@pytest.mark.req("A2ACLI_OUT_001", "A2ACLI_OUT_005")
def test_events_as_text_are_records_and_the_last_names_task_context_and_state(dragoman: Dragoman, peer: Peer) -> None:
    chunk = {"taskId": "t-1", "contextId": "c-1", "artifact": {"artifactId": "a", "parts": [{"text": "x\n"}]}}
    peer.play = lambda seen: events(
        seen,
        {"task": task(state="WORKING")},
        {"artifactUpdate": {**chunk, "append": True, "lastChunk": True}},
        status("COMPLETED"),
    )

    done = dragoman.inside("send", "-a", peer.url, "--stream", "hello")

    assert done.out == (
        "Event: task\nTask: t-1\nContext: c-1\nState: WORKING\n\n"
        "Event: artifact\nTask: t-1\nContext: c-1\nArtifact: a\nAppend: yes\nLast chunk: yes\nText:\n  x\n\n"
        "Event: status\nTask: t-1\nContext: c-1\nState: COMPLETED\n"
        f'Continue: dragoman send -a {peer.url} --context-id c-1 "<text>"\n'
    )


@pytest.mark.req("A2ACLI_OUT_005")
def test_a_reader_that_goes_away_ends_the_program_quietly(dragoman: Dragoman, here: Where) -> None:
    command = subprocess.list2cmdline([*COMMAND, "send", *here, "--stream", "!stream 200 1ms"])

    done = subprocess.run(
        ["sh", "-c", f"{command} | head -1"],
        env=dragoman.environment,
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.stdout == "Event: task\n"
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


@pytest.mark.req("A2ACLI_OUT_005", "A2ACLI_OUT_001")
def test_progress_is_for_terminals_and_leaves_nothing_behind(dragoman: Dragoman, here: Where) -> None:
    shown = on_terminal(dragoman, "send", *here, "!slow 700ms")
    silent = on_terminal(dragoman, "send", *here, "--progress", "off", "!slow 10ms")

    assert "WORKING" in shown.screen
    assert "│ working for 700ms" in shown.screen
    last = shown.screen[shown.screen.rindex("\x1b") :]
    assert last.startswith("\x1b[2KTask: ")
    assert last.endswith("Text:\n  done after 700ms\n\n")
    assert shown.screen.count("\x1b[?25l") == shown.screen.count("\x1b[?25h")
    assert "\x1b" not in silent.screen


@pytest.mark.req("A2ACLI_OUT_005")
def test_progress_shows_what_an_agent_says_and_obeys_none_of_it(dragoman: Dragoman, here: Where) -> None:
    shown = on_terminal(dragoman, "send", *here, "--stream", "!slow 0.7s\x1b]0;owned\x07")
    marked = on_terminal(dragoman, "send", *here, "!stream 3 500ms")

    assert "\x1b]0;" not in shown.screen
    assert "\\x1b]0;owned\\x07" in shown.screen
    assert "│ chunk 1 of 3" in marked.screen
