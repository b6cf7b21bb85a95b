"""An agent of strands-agents, served by its own A2A server: ``python strands_agent.py``. Runs under its own
interpreter, and prints its address.

Its model is no model: it says again what it was told last, in three pieces, with how often it was told something.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from strands import Agent
from strands.models import Model
from strands.multiagent.a2a import A2AServer


class Parrot(Model):
    """Says again what it was told."""

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(self, *args: Any, **more: Any) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError
        yield {}

    async def stream(self, messages: Any, *args: Any, **more: Any) -> AsyncIterator[Any]:
        told = [message for message in messages if message["role"] == "user"]
        text = "".join(block.get("text", "") for block in told[-1]["content"])
        if text == "fail":
            raise RuntimeError("the parrot is ill")
        yield {"messageStart": {"role": "assistant"}}
        for piece in (f"{len(told)}: ", text[: len(text) // 2], text[len(text) // 2 :]):
            yield {"contentBlockDelta": {"delta": {"text": piece}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def make_parrot(context_id: str) -> Agent:
    return Agent(Parrot(), name="Parrot", description="Says again what it was told", callback_handler=None)


async def main() -> None:
    logging.disable(logging.CRITICAL)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    app = A2AServer(agent_factory=make_parrot, http_url=url, enable_a2a_compliant_streaming=True).to_starlette_app()
    listening.listen(256)
    print(url, flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main())
