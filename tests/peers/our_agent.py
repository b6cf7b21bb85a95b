"""The peers' agent, written with dragoman. ``programs/sdk_agent.py`` does the same with the official SDK.

The first word of a message says what it does with the rest:

* ``say X`` answers with the message X; ``release NAME`` too, and lets ``hold NAME`` go on;
* ``do X`` makes an artifact of X; ``echo`` one of the message's further parts; ``size`` one of how many bytes the first
  of them has, which is a file;
* ``stream N`` makes one artifact in N pieces;
* ``hold NAME`` works until it is released;
* ``ask``, ``login`` need a message more: INPUT_REQUIRED, AUTH_REQUIRED;
* ``fail X``, ``reject X`` end so, with the message X.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from dragoman import Agent, AgentSkill, Context, Fail, Reject, Reply

MODES = ("text/plain", "application/json", "application/octet-stream", "image/png")
SKILL = AgentSkill(id="words", name="Words", description="Does what the first word says", tags=["test"])


def make_agent() -> Agent:
    """A new agent, that holds nothing yet."""
    description = "Does what the first word says"
    agent = Agent("Words", description=description, skills=[SKILL], input_modes=MODES, output_modes=MODES)
    held: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    @agent.message
    async def words(ctx: Context) -> Reply | None:
        word, _, rest = (ctx.message.parts[0].text or "").partition(" ")
        if word in ("say", "release"):
            if word == "release":
                held[rest].set()
            return Reply(rest)
        if word == "hold":
            await ctx.update("Holding")
            await held[rest].wait()
            await ctx.artifact(f"Released {rest}", name="result")
        else:
            await WORK[word](ctx, rest)
        return None

    return agent


async def _do(ctx: Context, text: str) -> None:
    await ctx.artifact(text, name="result")


async def _echo(ctx: Context, text: str) -> None:
    await ctx.artifact(ctx.message.parts[1:], name="result")


async def _size(ctx: Context, text: str) -> None:
    await ctx.artifact(str(len(ctx.message.parts[1].raw or b"")), name="result")


async def _stream(ctx: Context, count: str) -> None:
    async with ctx.artifact_stream(artifact_id="pieces") as out:
        for number in range(int(count)):
            await out.write(f"{number} ", last=number == int(count) - 1)


async def _ask(ctx: Context, text: str) -> None:
    answer = await ctx.ask("Which name?")
    await ctx.artifact(f"Hello {answer}", name="result")


async def _login(ctx: Context, text: str) -> None:
    answer = await ctx.authorize("Please log in")
    await ctx.artifact(f"Hello {answer}", name="result")


async def _fail(ctx: Context, text: str) -> None:
    raise Fail(text)


async def _reject(ctx: Context, text: str) -> None:
    raise Reject(text)


WORK = {
    "do": _do,
    "echo": _echo,
    "size": _size,
    "stream": _stream,
    "ask": _ask,
    "login": _login,
    "fail": _fail,
    "reject": _reject,
}
