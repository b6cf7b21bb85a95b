"""A hosted agent as a process: ``python -m tests.agentcore.e2e.program [STORE]``, on the port that ``A2A_PORT`` names.

Words: ``wait`` works until it is cancelled, ``block`` holds its event loop for three seconds; anything else is
answered at once, with the number of turns of this process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from dragoman import Agent, Limits, agentcore

agent = Agent("tide-desk", description="Answers questions about harbour tides.", version="2.4.0")
turns = 0


@agent.task
async def answer(ctx):
    global turns
    turns += 1
    if ctx.text == "wait":
        await asyncio.sleep(600)
    if ctx.text == "block":
        time.sleep(3)  # noqa: ASYNC251
    return f"turn {turns} of process {os.getpid()}"


if __name__ == "__main__":
    store = sys.argv[1] if len(sys.argv) > 1 else None
    limits = Limits(shutdown_grace=0.5, interrupt_wait=2.0, lease=1.0)
    agentcore.run(agentcore.app(agent, store=store, limits=limits), host="127.0.0.1")
