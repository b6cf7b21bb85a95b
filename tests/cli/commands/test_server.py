"""``dragoman server``: the echo agent, and any program as an agent."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from examples.process import DRAGOMAN, AgentProcess
from tests.cli.commands.program import COMMAND, Dragoman

PROGRAM = """
import os, subprocess, sys, time
text = sys.stdin.read()
word, _, rest = text.partition(" ")
if word == "environment":
    print(sorted(name for name in os.environ if name.startswith(("A2A", "DRAGOMAN", "SECRET"))))
elif word == "fail":
    sys.stderr.write("line one\\nsecret detail\\n")
    sys.exit(int(rest))
elif word == "sleep":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print(os.getpid(), child.pid, flush=True)
    time.sleep(60)
elif word == "large":
    sys.stdout.write("x" * 300_000)
elif word == "ignore":
    print("nothing read")
else:
    for piece in text.split():
        print(piece, flush=True)
        time.sleep(0.05)
"""


@contextmanager
def program_agent(folder: Path, *options: str) -> Iterator[tuple[str, ...]]:
    """Options that lead to the program as an agent."""
    path = folder / "work.py"
    path.write_text(PROGRAM)
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"
    environment = {"A2ACLI_BEARER": "x", "DRAGOMAN_BASIC": "y:z", "SECRET": "s"}
    with AgentProcess([DRAGOMAN, "server", "--exec", command, *options], environment=environment) as process:
        yield "-a", process.url


@pytest.mark.req("A2ACLI_DEMO_SERVER_001")
@pytest.mark.parametrize("words", [("server", "--echo"), ("demo-server",)])
def test_the_first_line_says_where_the_card_is_and_a_signal_ends_it(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    process = dragoman.start(*words, "--port", "0", "-o", "json" if words[0] == "demo-server" else "text")
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    url = json.loads(line)["card"] if words[0] == "demo-server" else line.removeprefix("Agent card: ").strip()

    answered = dragoman.inside("send", "-a", url, "hello")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)

    assert answered.out.endswith("Text:\n  hello\n\n")
    assert process.returncode == 0


@pytest.mark.req("A2ACLI_DEMO_SERVER_001", "A2ACLI_EXIT_001")
@pytest.mark.parametrize("arguments", [(), ("--echo", "--exec", "cat"), ("--echo", "--port", "x")])
def test_a_server_is_one_thing(dragoman: Dragoman, arguments: tuple[str, ...]) -> None:
    assert dragoman.inside("server", *arguments).status == 2


@pytest.mark.req("A2ACLI_DEMO_SERVER_001", "A2ACLI_TX_004")
def test_a_program_is_an_agent_over_both_bindings(dragoman: Dragoman, tmp_path: Path) -> None:
    with program_agent(tmp_path, "--chunk", "\n", "--name", "Words") as where:
        for binding in ("JSONRPC", "HTTP+JSON"):
            at = (*where, "--transport", binding)
            streamed = dragoman.inside("send", *at, "-o", "json", "--stream", "one two three")
            whole = dragoman.inside("send", *at, "one two three")
            large = dragoman.inside("send", *at, "-o", "json", "large")
            ignored = dragoman.inside("send", *at, "ignore " + "x" * 200_000)
            environment = dragoman.inside("send", *at, "environment")

            chunks = [line["artifactUpdate"] for line in streamed.lines if "artifactUpdate" in line]
            assert [chunk["artifact"]["parts"][0]["text"] for chunk in chunks] == ["one\n", "two\n", "three\n"]
            assert whole.out.endswith("Text:\n  one\n  two\n  three\n\n")
            texts = [part["text"] for part in large.json["task"]["artifacts"][0]["parts"]]
            assert "".join(texts) == "x" * 300_000
            assert ignored.field("State") == "COMPLETED"
            assert "['A2A_CONTEXT_ID', 'A2A_MESSAGE_ID', 'A2A_TASK_ID']" in environment.out


@pytest.mark.req("A2ACLI_DEMO_SERVER_001")
@pytest.mark.parametrize("options", [(), ("--send-stderr",)])
def test_its_exit_status_decides_and_its_errors_stay_here_unless_asked_for(
    dragoman: Dragoman, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with program_agent(tmp_path, *options) as where:
        done = dragoman.inside("send", *where, "-o", "json", "fail 3")

    text = done.json["task"]["status"]["message"]["parts"][0]["text"]
    assert done.json["task"]["status"]["state"] == "TASK_STATE_FAILED"
    assert text.startswith("The program ended with status 3")
    assert ("secret detail" in done.out) == bool(options)


@pytest.mark.req("A2ACLI_DEMO_SERVER_001", "A2ACLI_TASK_CANCEL_001")
@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_a_program_that_is_not_wanted_any_more_is_ended_with_its_children(
    dragoman: Dragoman, tmp_path: Path, how: str
) -> None:
    options = ("--exec-timeout", "1500ms") if how == "timeout" else ()
    with program_agent(tmp_path, *options) as where:
        process = dragoman.start("send", *where, "-o", "json", "--stream", "sleep")
        assert process.stdout is not None
        first, second = json.loads(process.stdout.readline()), json.loads(process.stdout.readline())
        pids = [int(pid) for pid in second["artifactUpdate"]["artifact"]["parts"][0]["text"].split()]
        assert all(map(psutil.pid_exists, pids))
        if how == "cancel":
            canceled = dragoman.inside("task", "cancel", first["task"]["id"], *where)
            assert canceled.field("State") == "CANCELED"
        last = json.loads(process.communicate(timeout=20)[0].splitlines()[-1])

    expected = "TASK_STATE_CANCELED" if how == "cancel" else "TASK_STATE_FAILED"
    assert last["statusUpdate"]["status"]["state"] == expected
    psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=5)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.req("A2ACLI_DEMO_SERVER_001")
def test_without_a_shell_no_word_means_anything_to_one(dragoman: Dragoman) -> None:
    command = [*COMMAND, "server", "--exec", sys.executable, "--exec-arg", "-c", "--exec-arg", "print('$HOME; `id`')"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--no-streaming"],
        env=dragoman.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().decode().removeprefix("Agent card: ").strip()
        started = time.monotonic()
        done = dragoman.inside("send", "-a", url, "x", "--poll-interval", "100ms")
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=20)

    assert done.out.endswith("Text:\n  $HOME; `id`\n\n")
    assert time.monotonic() - started < 10
