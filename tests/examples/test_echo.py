"""The echo example, as a process."""

from __future__ import annotations

import signal

from dragoman.client import Client
from dragoman.model import TaskState
from examples.process import AgentProcess

AGENT = "examples.echo.agent:agent"


async def test_echo_completes_a_task_with_what_was_said(client: Client) -> None:
    result = await client.run("hello, dragoman ✓")

    assert result.state is TaskState.COMPLETED
    assert result.text == "You said: hello, dragoman ✓"


def test_a_server_that_is_asked_to_end_ends_at_once_and_in_order() -> None:
    with AgentProcess.serving(AGENT) as process:
        assert process.stop() in (0, -signal.SIGTERM)
