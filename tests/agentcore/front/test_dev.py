"""``dragoman agentcore dev``: what it prints is enough to call the agent, and it ends in order."""

from __future__ import annotations

import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.commands.program import Done, Dragoman

AGENT = """
from dragoman import Agent

agent = Agent("Tides", description="Answers questions about harbour tides")
turns = 0


@agent.task
async def tide(ctx):
    global turns
    turns += 1
    return f"turn {turns}: {ctx.text}"
"""
SESSION = "harbour-7c0d9f1e-2b64-4f0e-8a55-90d1c3b7e2aa"


@pytest.fixture
def dragoman(tmp_path: Path) -> Dragoman:
    """The program, in a folder with an agent."""
    (tmp_path / "tides.py").write_text(AGENT)
    return Dragoman(tmp_path)


@contextmanager
def rehearsing(dragoman: Dragoman, *options: str) -> Iterator[dict[str, str]]:
    """What is printed by a front that serves, by its first words; ended as by Ctrl-C, with status 0."""
    process = dragoman.start("agentcore", "dev", "tides:agent", "--port", "0", *options)
    assert process.stdout is not None
    printed: dict[str, str] = {}
    try:
        for line in process.stdout:
            word, _, rest = line.decode().strip().partition(" ")
            printed[word] = rest.strip()
            if word == "stop":
                break
        assert "stop" in printed, process.communicate()
        yield printed
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 0, said
        assert b"broke the contract" not in said
    finally:
        process.kill()
        process.communicate()


def follow(dragoman: Dragoman, command: str, *more: str) -> Done:
    """Do what the line says: variables, the program, its arguments."""
    words = shlex.split(command)
    at = words.index("dragoman")
    variables = dict(word.split("=", 1) for word in words[:at])
    return dragoman(*words[at + 1 :], *more, env=variables)


@pytest.mark.req("AC-F-02", "E2E-03")
@pytest.mark.parametrize("mode", [(), ("--sigv4",), ("--jwt",)])
def test_the_printed_command_calls_the_agent(dragoman: Dragoman, mode: tuple[str, ...]) -> None:
    with rehearsing(dragoman, *mode) as printed:
        done = follow(dragoman, printed["call"])

    assert done.status == 0, done.err
    assert "turn 1: hello" in done.out
    assert printed["url"].startswith("http://127.0.0.1:")
    assert printed["arn"].startswith("arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/")


@pytest.mark.req("AC-F-02", "AC-C-10")
def test_a_session_keeps_its_process_and_another_has_its_own(dragoman: Dragoman) -> None:
    with rehearsing(dragoman, "--sigv4") as printed:
        answers = [follow(dragoman, printed["call"], "--session-id", SESSION).out for _ in range(2)]
        answers.append(follow(dragoman, printed["call"], "--session-id", SESSION[::-1]).out)

    assert [answer.split("Text:")[1].split()[1] for answer in answers] == ["1:", "2:", "1:"]


@pytest.mark.req("B163")
@pytest.mark.parametrize("mode", ["--sigv4", "--jwt"])
def test_a_stream_is_printed_event_by_event(dragoman: Dragoman, mode: str) -> None:
    with rehearsing(dragoman, mode) as printed:
        done = follow(dragoman, printed["call"], "--stream", "-o", "json")

    assert done.status == 0, done.err
    kinds = [next(iter(event)) for event in done.lines]
    assert kinds[0] == "task"
    assert kinds[-1] == "statusUpdate"
    assert "artifactUpdate" in kinds


@pytest.mark.req("AC-F-07")
def test_a_call_without_keys_is_told_that_they_are_missing(dragoman: Dragoman) -> None:
    with rehearsing(dragoman, "--sigv4") as printed:
        command = printed["call"].partition("dragoman ")[2]
        done = dragoman(*shlex.split(command), env={"AWS_EC2_METADATA_DISABLED": "true"})

    assert done.status == 4
    assert "Missing Authentication Token" in done.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("tides:agent", "--sigv4", "--jwt"), "exclude each other"),
        (("tides:agent", "--allow-header", "Cookie"), "Cookie"),
        (("tides:nothing",), "nothing"),
        (("nowhere:agent",), "nowhere"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_served(
    dragoman: Dragoman, options: tuple[str, ...], words: str
) -> None:
    done = dragoman("agentcore", "dev", *options)

    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_port_that_is_taken_is_told(dragoman: Dragoman) -> None:
    with rehearsing(dragoman) as printed:
        port = printed["url"].partition("127.0.0.1:")[2].partition("/")[0]
        done = dragoman("agentcore", "dev", "tides:agent", "--port", port)

    assert done.status == 2
    assert port in done.err


def test_what_the_agent_writes_is_shown_and_its_end_is_awaited(dragoman: Dragoman) -> None:
    process = dragoman.start("agentcore", "dev", "tides:agent", "--port", "0")
    assert process.stdout is not None
    while not (line := process.stdout.readline().decode()).strip().startswith("call"):
        assert line
    follow(dragoman, line.strip().partition(" ")[2])
    process.send_signal(signal.SIGTERM)
    try:
        _, said = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        raise

    assert process.returncode == 0
    assert b"] Tides 1.0.0 serves A2A" in said
