"""Agents for the tests of this folder."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman import RESUMABLE_STREAMS, Agent, Reply


def make_echo(**more: Any) -> Agent:
    """Says it again; ``wait`` works until it is let go, ``ask`` asks, ``reply`` replies."""
    agent = Agent("Echo", description="Says it again.", **{"input_modes": ["*/*"], "output_modes": ["*/*"], **more})
    agent.go = asyncio.Event()  # type: ignore[attr-defined]

    @agent.message
    async def echo(ctx):  # type: ignore[no-untyped-def]
        if ctx.text == "reply":
            return Reply("direct")
        if ctx.text == "wait":
            await ctx.update("waiting")
            await agent.go.wait()  # type: ignore[attr-defined]
        if ctx.text == "ask":
            answer = await ctx.ask("and?")
            return f"You said: {answer.text}"
        if ctx.text.startswith("count "):
            async with ctx.artifact_stream() as out:
                for number in range(int(ctx.text.removeprefix("count "))):
                    await out.write(f"{number} ")
            return None
        return f"You said: {ctx.text}"

    return agent


def make_resumable() -> Agent:
    """The same, with numbered streams."""
    return make_echo(extensions=[RESUMABLE_STREAMS])
