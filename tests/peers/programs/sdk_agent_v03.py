"""The peers' agent, written with the official SDK of the 0.3 line: ``python sdk_agent_v03.py``.

Runs under that SDK's own interpreter. Serves the three bindings on free ports of this machine and prints its address.
What it does is told in ``tests/peers/our_agent.py``, word for word the same; besides, it keeps webhooks and has an
extended card.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket

import grpc
import uvicorn
from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task

HELD: dict[str, asyncio.Event] = {}
QUESTIONS = {"ask": (TaskState.input_required, "Which name?"), "login": (TaskState.auth_required, "Please log in")}


class Words(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        word, _, rest = context.message.parts[0].root.text.partition(" ")
        if word in ("say", "release"):
            if word == "release":
                HELD.setdefault(rest, asyncio.Event()).set()
            await event_queue.enqueue_event(new_agent_text_message(rest, context_id=context.context_id))
            return
        if context.current_task is None:
            context.current_task = new_task(context.message)
            await event_queue.enqueue_event(context.current_task)
        else:
            word, rest = "greet", context.get_user_input()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await getattr(self, f"_{word}")(context, updater, rest)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def _greet(self, context: RequestContext, updater: TaskUpdater, name: str) -> None:
        await updater.add_artifact(_text(f"Hello {name}"), name="result")
        await updater.complete()

    async def _do(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.start_work()
        await updater.add_artifact(_text(text), name="result", last_chunk=True)
        await updater.complete()

    async def _echo(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.add_artifact(list(context.message.parts[1:]), name="result", last_chunk=True)
        await updater.complete()

    async def _size(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await self._do(context, updater, str(len(base64.b64decode(context.message.parts[1].root.file.bytes))))

    async def _stream(self, context: RequestContext, updater: TaskUpdater, count: str) -> None:
        await updater.start_work()
        last = int(count) - 1
        for number in range(last + 1):
            await updater.add_artifact(_text(f"{number} "), "pieces", append=number > 0, last_chunk=number == last)
        await updater.complete()

    async def _hold(self, context: RequestContext, updater: TaskUpdater, name: str) -> None:
        held = HELD.setdefault(name, asyncio.Event())
        while not held.is_set():
            # Who subscribes is told nothing until there is news, so that there has to be some.
            await updater.start_work(_said("Holding", context))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(held.wait(), 0.1)
        await updater.add_artifact(_text(f"Released {name}"), name="result", last_chunk=True)
        await updater.complete()

    async def _ask(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        state, question = QUESTIONS["ask"]
        await updater.update_status(state, _said(question, context), final=True)

    async def _login(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        state, question = QUESTIONS["login"]
        await updater.update_status(state, _said(question, context))

    async def _fail(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.failed(_said(text, context))

    async def _reject(self, context: RequestContext, updater: TaskUpdater, text: str) -> None:
        await updater.reject(_said(text, context))


def _text(text: str) -> list[Part]:
    return [Part(root=TextPart(text=text))]


def _said(text: str, context: RequestContext):
    return new_agent_text_message(text, context.context_id, context.task_id)


def make_card(url: str, grpc_address: str, name: str) -> AgentCard:
    modes = ["text/plain", "application/json", "application/octet-stream", "image/png"]
    others = [("JSONRPC", url), ("HTTP+JSON", url), ("GRPC", grpc_address)]
    return AgentCard(
        name=name,
        description="Does what the first word says",
        version="1.0.0",
        url=url,
        preferred_transport="JSONRPC",
        additional_interfaces=[AgentInterface(url=url, transport=transport) for transport, url in others],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        supports_authenticated_extended_card=True,
        default_input_modes=modes,
        default_output_modes=modes,
        skills=[AgentSkill(id="words", name="Words", description="Does what the first word says", tags=["test"])],
    )


async def main() -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    beside = grpc.aio.server()
    grpc_address = f"127.0.0.1:{beside.add_insecure_port('127.0.0.1:0')}"
    card, extended = (make_card(url, grpc_address, name) for name in ("Words", "Words, extended"))
    handler = DefaultRequestHandler(
        Words(), InMemoryTaskStore(), push_config_store=InMemoryPushNotificationConfigStore()
    )
    app = A2ARESTFastAPIApplication(card, handler, extended_agent_card=extended).build()
    A2AStarletteApplication(card, handler, extended_agent_card=extended).add_routes_to_app(app)
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(card, handler), beside)
    await beside.start()
    listening.listen(256)
    print(url, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, ws="none")).serve(
        sockets=[listening]
    )


if __name__ == "__main__":
    asyncio.run(main())
