"""The peers' agent, written with the official SDK: ``python sdk_agent.py``. Runs under the SDK's own interpreter.

Serves the three bindings on free ports of this machine and prints its address. What it does is told in
``tests/peers/our_agent.py``, word for word the same.
"""

from __future__ import annotations

import asyncio
import socket

import grpc
import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Role,
    TaskState,
    a2a_pb2_grpc,
)
from starlette.applications import Starlette

HELD: dict[str, asyncio.Event] = {}
QUESTIONS = {
    "ask": (TaskState.TASK_STATE_INPUT_REQUIRED, "Which name?"),
    "login": (TaskState.TASK_STATE_AUTH_REQUIRED, "Please log in"),
}


class Words(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        word, _, rest = context.message.parts[0].text.partition(" ")
        if word in ("say", "release"):
            if word == "release":
                HELD.setdefault(rest, asyncio.Event()).set()
            await event_queue.enqueue_event(new_text_message(rest, context_id=context.context_id))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is not None:
            await updater.add_artifact([new_text_part(f"Hello {context.get_user_input()}")], name="result")
            await updater.complete()
            return
        await getattr(self, f"_{word}")(context, updater, rest)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def _do(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.start_work()
        await updater.add_artifact([new_text_part(text)], name="result", last_chunk=True)
        await updater.complete()

    async def _echo(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.add_artifact(list(context.message.parts[1:]), name="result", last_chunk=True)
        await updater.complete()

    async def _size(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await self._do(context, updater, str(len(context.message.parts[1].raw)))

    async def _stream(self, context: RequestContext, updater: TaskUpdater, count: str) -> None:
        await updater.start_work()
        last = int(count) - 1
        for number in range(last + 1):
            await updater.add_artifact(
                [new_text_part(f"{number} ")], "pieces", append=number > 0, last_chunk=number == last
            )
        await updater.complete()

    async def _hold(self, context: RequestContext, updater: TaskUpdater, name: str) -> None:
        await updater.start_work(_said("Holding", context))
        await HELD.setdefault(name, asyncio.Event()).wait()
        await updater.add_artifact([new_text_part(f"Released {name}")], name="result", last_chunk=True)
        await updater.complete()

    async def _ask(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        state, question = QUESTIONS["ask"]
        await updater.update_status(state, _said(question, context))

    async def _login(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        state, question = QUESTIONS["login"]
        await updater.update_status(state, _said(question, context))

    async def _fail(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.failed(_said(text, context))

    async def _reject(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.reject(_said(text, context))


def _said(text: str, context: RequestContext):
    return new_text_message(text, context_id=context.context_id, task_id=context.task_id, role=Role.ROLE_AGENT)


def make_card(url: str, grpc_address: str) -> AgentCard:
    modes = ["text/plain", "application/json", "application/octet-stream", "image/png"]
    return AgentCard(
        name="Words",
        description="Does what the first word says",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")
            for binding, url in (("JSONRPC", url), ("HTTP+JSON", url), ("GRPC", grpc_address))
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=modes,
        default_output_modes=modes,
        skills=[AgentSkill(id="words", name="Words", description="Does what the first word says", tags=["test"])],
    )


async def main() -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    beside = grpc.aio.server()
    card = make_card(url, f"127.0.0.1:{beside.add_insecure_port('127.0.0.1:0')}")
    handler = DefaultRequestHandler(Words(), InMemoryTaskStore(), card)
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/"),
        *create_rest_routes(handler),
    ]
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), beside)
    await beside.start()
    listening.listen(256)
    print(url, flush=True)
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", access_log=False, ws="none")
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main())
