"""The echo agent: repeats what it is told, and knows a few words with which every path of a client can be practised.

Spec: A2ACLI_DEMO_SERVER_001; section 20.2 of the register of the command line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.cli.values import read_count, read_duration
from dragoman.errors import A2A_ERRORS, JSON_RPC_ERRORS, A2AError
from dragoman.model import Part
from dragoman.server import Agent, Context, Fail, Reject, Reply

WORDS = """\
!message TEXT     answer with a direct message, without a task
!input QUESTION   ask for input, then repeat the answer
!auth TEXT        ask for an authorization, then go on
!fail TEXT        fail
!reject TEXT      reject the task
!slow DURATION    work for a while
!stream N PAUSE   send N chunks with pauses
!file NAME BYTES  send a file
!url ADDRESS      send the address of a file
!data             send the data that came, or some
!all              send text, data, a file and an address
!history          tell the history
!error NAME       answer with an A2A error
"""
_ERRORS: dict[str, type[A2AError]] = {kind.__name__: kind for kind in (*A2A_ERRORS, *JSON_RPC_ERRORS)}
_LARGEST = 5_000_000
_MOST = 10_000

Verb = Callable[[Context, str], Awaitable[Any]]


def make_echo(name: str = "Echo", description: str = "", *, streaming: bool = True) -> Agent:
    """The agent."""
    text = description or "Repeats what it is told, and plays what a first word such as !input or !fail asks for"
    modes = ("text/plain", "application/json", "application/octet-stream")
    agent = Agent(name, description=text, input_modes=("*/*",), output_modes=modes, streaming=streaming)
    agent.message(
        id="echo",
        name="Echo",
        description=f"Repeats what it is told, unless it begins with one of these words:\n{WORDS}",
        tags=["echo", "demo"],
        examples=["hello", "!input Which floor?", "!stream 5 200ms", "!fail out of paper"],
    )(answer)
    return agent


async def answer(ctx: Context) -> Any:
    """What the first word asks for, else the same text again."""
    word, _, rest = ctx.text.partition(" ")
    verb = _VERBS.get(word)
    return await verb(ctx, rest) if verb is not None else ctx.text or _said(ctx)


def _said(ctx: Context) -> Any:
    return ctx.data if ctx.data is not None else f"{len(ctx.message.parts)} part(s) without text"


async def _message(ctx: Context, rest: str) -> Reply:
    return Reply(rest or "hello")


async def _input(ctx: Context, rest: str) -> str:
    reply = await ctx.ask(rest or "What do you want?")
    return f"You said: {reply.text}"


async def _auth(ctx: Context, rest: str) -> str:
    await ctx.authorize(rest or "Please authorize this")
    return "authorized"


async def _fail(ctx: Context, rest: str) -> None:
    raise Fail(rest or "failed as asked")


async def _reject(ctx: Context, rest: str) -> None:
    raise Reject(rest or "rejected as asked")


async def _slow(ctx: Context, rest: str) -> str:
    await ctx.update(f"working for {rest or '1s'}")
    await asyncio.sleep(_duration(rest or "1s"))
    return f"done after {rest or '1s'}"


async def _stream(ctx: Context, rest: str) -> None:
    count, _, pause = rest.partition(" ")
    try:
        number = min(read_count(count or "3"), _MOST)
    except ValueError as error:
        raise Fail(f"the number of chunks {error}") from None
    seconds = _duration(pause or "100ms")
    async with ctx.artifact_stream(name="chunks", artifact_id="chunks") as out:
        for index in range(number):
            await out.write(f"chunk {index + 1} of {number}\n", last=index + 1 == number)
            await asyncio.sleep(seconds)


async def _file(ctx: Context, rest: str) -> None:
    name, _, count = rest.rpartition(" ")
    if not count.isdigit():
        name, count = rest, "16"
    content = (b"0123456789abcdef" * (int(count[:9]) // 16 + 1))[: min(int(count[:9]), _LARGEST)]
    await ctx.artifact(
        Part(raw=content, filename=name or "file.bin", media_type="application/octet-stream"), name="file"
    )


async def _url(ctx: Context, rest: str) -> None:
    await ctx.artifact(Part(url=rest or "https://example.com/spec.pdf", media_type="application/pdf"), name="address")


async def _data(ctx: Context, rest: str) -> None:
    await ctx.artifact(ctx.data if ctx.data is not None else {"currency": "EUR", "total": 2960}, name="data")


async def _all(ctx: Context, rest: str) -> None:
    parts = [
        Part(text=rest or "some text"),
        Part(data={"total": 2960}, media_type="application/json"),
        Part(raw=b"0123456789", filename="digits.bin", media_type="application/octet-stream"),
        Part(url="https://example.com/spec.pdf", filename="spec.pdf", media_type="application/pdf"),
    ]
    await ctx.artifact(parts, name="everything", artifact_id="everything")


async def _history(ctx: Context, rest: str) -> str:
    await ctx.update("remembering")
    return f"{len(ctx.history)} message(s)"


async def _error(ctx: Context, rest: str) -> None:
    kind = _ERRORS.get(rest.strip())
    if kind is None:
        raise Fail(f"there is no such error; there are {', '.join(_ERRORS)}")
    raise kind()


def _duration(text: str) -> float:
    try:
        return read_duration(text)
    except ValueError as error:
        raise Fail(f"{text!r} {error}") from None


_VERBS: dict[str, Verb] = {
    "!message": _message,
    "!input": _input,
    "!auth": _auth,
    "!fail": _fail,
    "!reject": _reject,
    "!slow": _slow,
    "!stream": _stream,
    "!file": _file,
    "!url": _url,
    "!data": _data,
    "!all": _all,
    "!history": _history,
    "!error": _error,
}
