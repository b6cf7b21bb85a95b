"""The agents of these tests."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from dragoman import Agent
from dragoman.push import PushSettings

FAST: dict[str, Any] = {"allow_private": True, "first_pause": 0.05, "longest_pause": 0.2, "poll": 0.1}


def settings(**changes: Any) -> PushSettings:
    """Settings with short times, for webhooks on this machine."""
    return PushSettings(**{**FAST, **changes})


def counting(rerun: bool = True, **changes: Any) -> Agent:
    """Says a number of things: ``count N``; asks first on ``ask N``; waits on ``wait``."""
    agent = Agent("Counting", description="Counts.", push=settings(**changes))

    @agent.task(rerun=rerun)
    async def count(ctx):  # type: ignore[no-untyped-def]
        verb, number = ctx.text.split()
        if verb == "ask":
            await ctx.ask("go on?")
        for step in range(int(number)):
            await ctx.update(f"step {step}")
            if verb == "slowly":
                await asyncio.sleep(0.02)
        return "done"

    return agent


once = counting(rerun=False, close_wait=30.0)
process_agent = counting(timeout=float(os.environ.get("PUSH_TIMEOUT", "2")))
