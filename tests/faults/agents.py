"""The agents of these tests. What one makes of a text can be told beforehand, so that a caller's end is checked to the
letter."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict

from dragoman import RESUMABLE_STREAMS, Agent

MB = 1_000_000

PAUSE = 0.002
"""Between two words, so that a task is long enough to be hit."""


def words(count: int) -> list[str]:
    """What an agent says to ``words COUNT``: pieces of different lengths, some of them not ASCII."""
    return [f"{number}:{'žluťoučký kůň 馬 🐎'[: number % 17]}\u2028 " for number in range(count)]


def working(*, rerun: bool, resumable: bool = True) -> Agent:
    """Says words (``words COUNT``) or asks questions (``ask COUNT``)."""
    agent = Agent(
        "Working", description="Says words, asks questions.", extensions=(RESUMABLE_STREAMS,) if resumable else ()
    )

    @agent.task(rerun=rerun)
    async def work(ctx):
        verb, count = ctx.text.split()
        if verb == "ask":
            answers = [await ctx.ask(f"question {number}") for number in range(1, int(count) + 1)]
            await ctx.update("thinking")
            await asyncio.sleep(PAUSE)
            await ctx.artifact(", ".join(answer.text for answer in answers))
            return
        await ctx.update("begun")
        async with ctx.artifact_stream(name="words") as out:
            for word in words(int(count)):
                await out.write(word)
                await asyncio.sleep(PAUSE)

    return agent


once = working(rerun=False)
again = working(rerun=True)


class Gates:
    """Doors at which tasks wait until another task, or enough of them, open it."""

    def __init__(self) -> None:
        self._events: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._waiting: Counter[str] = Counter()

    def open(self, name: str) -> None:
        """Let all go on."""
        self._events[name].set()

    async def wait(self, name: str, enough: int = 0) -> None:
        """Wait for :meth:`open`, or until ``enough`` wait."""
        self._waiting[name] += 1
        if self._waiting[name] == enough:
            self.open(name)
        await self._events[name].wait()


loaded = Agent("Loaded", description="Makes many or large events, when it is told to.")
_gates = Gates()


@loaded.task
async def load(ctx):
    """``open GATE``; ``tick GATE COUNT``; ``big GATE COUNT``: events of 1 MB each; ``together GATE COUNT``."""
    verb, gate, *rest = ctx.text.split()
    if verb == "open":
        _gates.open(gate)
        return
    await _gates.wait(gate, int(rest[0]) if verb == "together" else 0)
    for number in range(int(rest[0]) if verb in ("tick", "big") else 0):
        text = f"{number} ".ljust(MB if verb == "big" else 0, "x")
        await ctx.artifact(text, artifact_id="last")
        await asyncio.sleep(PAUSE)
