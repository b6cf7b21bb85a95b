"""The smallest agent: it repeats what it is told.

    dragoman run examples.echo.agent:agent

Its answer is a task with one text artifact. Anything that speaks A2A can call it; from Python:

    async with dragoman.connect("http://127.0.0.1:8000") as client:
        print((await client.run("hello")).text)
"""

from __future__ import annotations

from dragoman import Agent, Context

agent = Agent("Echo", description="Repeats what you say")


@agent.task
async def echo(ctx: Context) -> str:
    """Repeats your words."""
    return f"You said: {ctx.text}"
