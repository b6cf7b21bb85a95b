"""The agents that are measured. ``programs/a2a_sdk_serving.py`` has the same ones, written with a2a-sdk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from dragoman import Agent, App, Context, Reply
from dragoman.ports.store import TaskStore

PIECE = "a piece of text of about forty characters "

reply = Agent("Reply", description="Answers with a direct message.")
task = Agent("Task", description="Answers with a task of one artifact.")
chunks = Agent("Chunks", description="Streams a hundred pieces of text, or as many as the message says.")
broadcast = Agent("Broadcast", description="Streams to those that have joined: `go` lets the tasks begin that wait.")


@reply.reply
async def answer(ctx: Context) -> str:
    """Repeat the text."""
    return f"You said: {ctx.text}"


@task.task
async def work(ctx: Context) -> str:
    """Repeat the text in an artifact."""
    return f"You said: {ctx.text}"


@chunks.task
async def stream(ctx: Context) -> AsyncIterator[str]:
    """The pieces."""
    for _ in range(int(ctx.text) if ctx.text.isdecimal() else 100):
        yield PIECE


PAUSE = 0.001
"""Seconds between the pieces of a stream whose pieces come one by one, as those of a model do."""

tokens = Agent("Tokens", description="Streams a hundred pieces of text, one by one.")


@tokens.task
async def stream_slowly(ctx: Context) -> AsyncIterator[str]:
    """The pieces, with pauses: without them all are there before the first can be sent, and go out in one send."""
    for _ in range(100):
        yield PIECE
        await asyncio.sleep(PAUSE)


GO = asyncio.Event()


@broadcast.message
async def wait_and_stream(ctx: Context) -> Reply | None:
    """The pieces, once they may come."""
    if ctx.text == "go":
        GO.set()
        return Reply("gone")
    await ctx.update()
    await GO.wait()
    async with ctx.artifact_stream() as out:
        for _ in range(100):
            await out.write(PIECE)
            await asyncio.sleep(PAUSE)
    return None


AGENTS = {"reply": reply, "task": task, "chunks": chunks, "tokens": tokens, "broadcast": broadcast}


def make_app(name: str, store: TaskStore | str | None) -> App:
    """The app for one measurement."""
    return App(AGENTS[name], store=store, public_url="http://127.0.0.1")
