"""The agents that are measured, written with a2a-sdk: ``python a2a_sdk_serving.py NAME STORE [grpc]``.

Runs under the SDK's own interpreter, on the server that dragoman is measured on, and prints its port.
``bench/agents.py`` says what the agents do. STORE is a SQLite file, ``memory:N`` for a store in memory that has N tasks
from the start, or empty for one that has none.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import sys

import grpc
import uvicorn
import uvloop
from a2a import types
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import DatabaseTaskStore, InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, a2a_pb2_grpc
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette

PIECE = "a piece of text of about forty characters "
PAUSE = 0.001


class Executor(AgentExecutor):
    """What the agents share: how they are canceled."""

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Reply(Executor):
    """Answers with a direct message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        said = f"You said: {context.get_user_input()}"
        await event_queue.enqueue_event(new_text_message(said, context_id=context.context_id))


class Task(Executor):
    """Answers with a task of one artifact."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.add_artifact([new_text_part(f"You said: {context.get_user_input()}")], last_chunk=True)
        await updater.complete()


class Chunks(Executor):
    """Streams a hundred pieces of text, or as many as the message says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for number in range(count_in(context.get_user_input())):
            await updater.add_artifact([new_text_part(PIECE)], "pieces", append=number > 0)
        await updater.complete()


class Tokens(Executor):
    """Streams a hundred pieces of text, one by one."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for number in range(100):
            await updater.add_artifact([new_text_part(PIECE)], "pieces", append=number > 0)
            await asyncio.sleep(PAUSE)
        await updater.complete()


class Broadcast(Executor):
    """Streams to those that have joined: ``go`` lets the tasks begin that wait."""

    def __init__(self) -> None:
        self._go = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if context.get_user_input() == "go":
            self._go.set()
            await event_queue.enqueue_event(new_text_message("gone", context_id=context.context_id))
            return
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        await self._go.wait()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        for number in range(100):
            await updater.add_artifact([new_text_part(PIECE)], "pieces", append=number > 0)
            await asyncio.sleep(PAUSE)
        await updater.complete()


AGENTS = {"reply": Reply, "task": Task, "chunks": Chunks, "tokens": Tokens, "broadcast": Broadcast}


def count_in(text: str) -> int:
    return int(text) if text.isdecimal() else 100


async def make_store(setting: str) -> TaskStore:
    if setting and not setting.startswith("memory:"):
        # Without a longer wait for the lock than the default, its writers fail under this load.
        engine = create_async_engine(f"sqlite+aiosqlite:///{setting}", connect_args={"timeout": 60})
        durable = DatabaseTaskStore(engine)
        await durable.initialize()
        return durable
    store = InMemoryTaskStore()
    for number in range(int(setting.partition(":")[2] or 0)):
        await store.save(finished_task(number), ServerCallContext())
    return store


def finished_task(number: int) -> types.Task:
    """As ``bench/seeding.py`` makes them."""
    task_id, context_id = f"task-{number:08d}", f"context-{number:08d}"
    asked = new_text_message("Do something", context_id=context_id, task_id=task_id, role=types.Role.ROLE_USER)
    task = new_task_from_user_message(asked)
    task.status.state = types.TaskState.TASK_STATE_COMPLETED
    task.status.timestamp.FromMilliseconds(1_700_000_000_000 + number)
    task.artifacts.append(types.Artifact(artifact_id="artifact-1", parts=[new_text_part(f"You said: {number}")]))
    return task


def make_card(name: str) -> AgentCard:
    return AgentCard(
        name=name.capitalize(),
        description="Measured",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url="http://127.0.0.1", protocol_binding=binding, protocol_version="1.0")
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id=name, name=name, description="Measured", tags=["measured"])],
    )


async def serve(name: str, file: str, binding: str = "") -> None:
    card = make_card(name)
    handler = DefaultRequestHandler(AGENTS[name](), await make_store(file), card)
    if binding == "grpc":
        await serve_grpc(handler)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/"), *create_rest_routes(handler)]
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(2048)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(
        Starlette(routes=routes),
        log_level="critical",
        access_log=False,
        ws="none",
        server_header=False,
        http="httptools",
        timeout_keep_alive=300,  # a connection may wait for the slowest of its period
    )
    gc.freeze()
    await uvicorn.Server(config).serve(sockets=[listening])


async def serve_grpc(handler: DefaultRequestHandler) -> None:
    server = grpc.aio.server()
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    gc.freeze()
    await server.wait_for_termination()


uvloop.run(serve(*sys.argv[1:]))
