"""An agent of fasta2a: ``python fasta2a_agent.py``. Runs under its own interpreter, of either line. Prints its address.

The first word of a message says what it does: ``echo`` makes an artifact of the message's further parts, ``fail``
raises, and any other one makes an artifact of the words behind it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import fasta2a.broker
import fasta2a.schema
import fasta2a.storage
import uvicorn
from fasta2a import FastA2A, Skill, Worker

HAS_KIND = not hasattr(fasta2a.schema, "StreamResponse")
"""Whether its objects are those of version 0.3."""


class Words(Worker):
    """Does what the first word of the message says."""

    async def run_task(self, params: Any) -> None:
        message = params["message"]
        word, _, rest = message["parts"][0]["text"].partition(" ")
        await self.storage.update_task(params["id"], state="working")
        if word == "fail":
            raise RuntimeError(rest)
        parts = message["parts"][1:] if word == "echo" else [{"text": rest, **({"kind": "text"} if HAS_KIND else {})}]
        artifact = {"artifact_id": uuid4().hex, "name": "result", "parts": parts}
        if not HAS_KIND:
            await self.publish_status(params["id"], params["context_id"], "working")
            await self.publish_artifact(params["id"], params["context_id"], artifact)
        await self.storage.update_task(params["id"], state="completed", new_artifacts=[artifact])

    async def cancel_task(self, params: Any) -> None:
        await self.storage.update_task(params["id"], state="canceled")

    def build_message_history(self, history: list[Any]) -> list[Any]:
        return history

    def build_artifacts(self, result: Any) -> list[Any]:
        return []


async def main() -> None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    storage, broker = fasta2a.storage.InMemoryStorage(), fasta2a.broker.InMemoryBroker()

    @asynccontextmanager
    async def working(app: FastA2A) -> AsyncIterator[None]:
        async with app.task_manager, Words(broker=broker, storage=storage).run():
            yield

    modes = ["application/json", "text/plain"]
    skill = Skill(id="words", name="Words", description="Does what the first word says", tags=["test"])
    skill |= {"input_modes": modes, "output_modes": modes}
    app = FastA2A(storage=storage, broker=broker, name="Words", url=url, skills=[skill], lifespan=working)
    listening.listen(256)
    print(url, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main())
