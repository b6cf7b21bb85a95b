"""The agent that the A2A project's conformance suite (TCK) talks to.

    python -m examples.tck.agent --host 127.0.0.1 --port 9999 --grpc-port 10000

The suite chooses the behaviour by how the id of a message starts, its successor by how the text starts. It uses the
lower interface, which yields protocol events: one run for each message, whether it starts a task or goes on with one.
Webhooks may have any address, since the suite's own is on this machine.

One card cannot show everything that the suite can test, so there are switches: ``--no-streaming``, ``--no-push`` and
``--required-extension``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable

from dragoman import Agent, App, Context
from dragoman.errors import ConfigurationError
from dragoman.model import (
    AgentExtension,
    AgentProvider,
    AgentSkill,
    Artifact,
    Message,
    Part,
    Role,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.push import PushSettings
from dragoman.server import GrpcServerSettings
from dragoman.server.serving import base_url, listen, run_app

Event = Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
Step = Callable[[], Event] | float
"""What to publish, or how many seconds to wait."""

UNIT = float(os.environ.get("TCK_STREAMING_TIMEOUT", "2.0"))
LONG = 5.0
A_DAY = 86_400.0
REQUIRED_EXTENSION = "urn:a2a:tck:required-extension"
MULTI_TURN = "tck-multi-turn"


def say(text: str) -> Message:
    """A message of the agent; ids are filled in when it is published."""
    return Message(message_id="", role=Role.AGENT, parts=[Part(text=text)])


def status(state: TaskState, text: str = "") -> Step:
    """A status update, with a message if there is text."""

    def step() -> Event:
        message = say(text) if text else None
        return TaskStatusUpdateEvent(task_id="", context_id="", status=TaskStatus(state=state, message=message))

    return step


def artifact(part: Part, *, append: bool = False, last_chunk: bool = False) -> Step:
    """An artifact of one part, or a piece of it."""

    def step() -> Event:
        piece = Artifact(artifact_id="output", name="output", parts=[part])
        return TaskArtifactUpdateEvent(task_id="", context_id="", artifact=piece, append=append, last_chunk=last_chunk)

    return step


def text(words: str) -> Step:
    """An artifact of one text part."""
    return artifact(Part(text=words))


WORKING = status(TaskState.WORKING)
DONE = status(TaskState.COMPLETED)
ASK = status(TaskState.INPUT_REQUIRED)
A_FILE = artifact(Part(raw=b"tck", filename="output.txt", media_type="text/plain"))
A_LINK = artifact(Part(url="https://example.com/output.txt", filename="output.txt", media_type="text/plain"))
CHUNKS = (
    artifact(Part(text="chunk-1 ")),
    artifact(Part(text="chunk-2"), append=True, last_chunk=True),
)

MESSAGES = {
    "tck-message-response": "Direct message response",
    "tck-stream-002": "Direct message response",
}
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "tck-complete-task": (status(TaskState.COMPLETED, "Hello from TCK"),),
    "tck-input-required": (ASK,),
    "tck-artifact-text": (text("Generated text content"), DONE),
    "tck-artifact-file-url": (A_LINK, DONE),
    "tck-artifact-file": (A_FILE, DONE),
    "tck-artifact-data": (artifact(Part(data={"key": "value", "count": 42})), DONE),
    "tck-stream-001": (WORKING, text("Stream hello from TCK"), DONE),
    "tck-stream-003": (WORKING, text("Stream task lifecycle"), DONE),
    "tck-stream-ordering-001": (WORKING, text("Ordered output"), DONE),
    "tck-stream-artifact-text": (WORKING, text("Streamed text content"), DONE),
    "tck-stream-artifact-file": (WORKING, A_FILE, DONE),
    "tck-stream-artifact-chunked": (WORKING, *CHUNKS, DONE),
    "tck-stream-basic": (WORKING, text("Streamed content"), DONE),
    "tck-stream-chunked": (WORKING, *CHUNKS, DONE),
    "tck-reject-task": (status(TaskState.REJECTED, "rejected"),),
    "tck-task-failure": (status(TaskState.FAILED, "The task failed, as it was told to"),),
    "tck-auth-required": (status(TaskState.AUTH_REQUIRED, "Grant access to the example account, then go on"),),
    "tck-delayed-complete": (WORKING, UNIT, status(TaskState.COMPLETED, "Done after delay")),
    "test-resubscribe-message-id": (WORKING, 2 * UNIT, DONE),
    "tck-long-running": (WORKING, LONG, DONE),
    "tck-cancel": (WORKING, A_DAY, DONE),
    MULTI_TURN: (ASK,),
}
KEYS = sorted([*SCRIPTS, *MESSAGES], key=len, reverse=True)


def key_of(message: Message) -> str:
    """What the message asks for: by its id, else by the text of its first part; empty when neither says."""
    said = (message.message_id, message.parts[0].text or "")
    return next((key for words in said for key in KEYS if words.startswith(key)), "")


def script_of(ctx: Context) -> tuple[Step, ...]:
    """The steps for the message of this run."""
    if ctx.task_id and key_of(ctx.history[0]) == MULTI_TURN:
        return (DONE,) if ctx.text == "done" else (ASK,)
    key = key_of(ctx.message)
    if key in MESSAGES:
        return (status(TaskState.COMPLETED, MESSAGES[key]),) if ctx.task_id else (lambda: say(MESSAGES[key]),)
    unhandled = status(TaskState.COMPLETED, f"Unhandled messageId prefix: {ctx.message.message_id}")
    return SCRIPTS.get(key, (unhandled,))


async def play(ctx: Context) -> AsyncIterator[Event]:
    """Publish the steps, one after the other."""
    for step in script_of(ctx):
        if isinstance(step, float):
            await asyncio.sleep(step)
        else:
            yield step()


def make_agent(*, streaming: bool = True, push: bool = True, required_extension: bool = False) -> Agent:
    """The agent, with the card that the switches ask for."""
    extensions = [AgentExtension(uri=REQUIRED_EXTENSION, required=True)] if required_extension else []
    agent = Agent(
        "TCK agent",
        description="Answers by the TCK's contract",
        skills=[AgentSkill(id="tck", name="TCK", description="Answers the TCK's messages", tags=["tck"])],
        provider=AgentProvider(organization="example", url="https://example.com"),
        input_modes=("text/plain", "application/json"),
        output_modes=("text/plain", "application/json"),
        streaming=streaming,
        push=PushSettings(allow_private=True) if push else False,
        extensions=extensions,
    )
    agent.events(play)
    return agent


def main() -> None:
    """Serve the agent until the process is stopped."""
    options = argparse.ArgumentParser(description="The agent for the A2A conformance suite")
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--port", type=int, default=9999)
    options.add_argument("--grpc-port", type=int, help="serve gRPC, too, without TLS; 0: any free port")
    options.add_argument("--store", help="where tasks live; default in memory")
    options.add_argument("--no-streaming", action="store_true", help="a card without streaming")
    options.add_argument("--no-push", action="store_true", help="a card without push notifications")
    options.add_argument("--required-extension", action="store_true", help="a card that requires an extension")
    given = options.parse_args()
    agent = make_agent(
        streaming=not given.no_streaming, push=not given.no_push, required_extension=given.required_extension
    )
    grpc = None if given.grpc_port is None else GrpcServerSettings(port=given.grpc_port)
    try:
        listening = listen(given.host, given.port)
    except ConfigurationError as error:
        options.error(str(error))
    address = base_url(listening)
    print(f"{address}/.well-known/agent-card.json", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        # 1.0 alone: the suite holds the card against a schema that knows no members of 0.3.
        app = App(agent, versions=("1.0",), store=given.store, public_url=address)
        run_app(app, listening, grpc=grpc)


if __name__ == "__main__":
    main()
