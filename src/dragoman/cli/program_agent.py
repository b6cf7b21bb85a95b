"""Any program as an agent: the text of the message on its standard input, its standard output as the artifact.

The program runs in a process group of its own, which is ended when the task is canceled or takes too long. Of the
environment it gets only what is named here, so that no credential of ours reaches it. What it writes to standard error
stays here, unless whoever serves it wants callers to see its last lines.

Spec: section 20.2 of the register of the command line (``server --exec``).
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence

import msgspec

from dragoman.server import Agent, Context, Fail

logger = logging.getLogger("dragoman.server.program")

_READ = 64 * 1024
_LONGEST_PIECE = 10 * 1024 * 1024
_KEPT_LINES, _LONGEST_LINE = 20, 2_000
_PATIENCE = 2.0
_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "PYTHONIOENCODING")
_NEVER_PASSED = ("A2ACLI_", "DRAGOMAN_")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What to run: ``command`` by the shell, or with ``arguments`` these words without one.

    * ``delimiter``: where the output is cut into chunks; empty: as it comes;
    * ``timeout``: seconds that one run may take, None for no limit;
    * ``pass_environment``: give it this process's environment, our own settings apart;
    * ``send_errors``: let callers see the last lines of its standard error when it fails.
    """

    command: str
    arguments: tuple[str, ...] = ()
    delimiter: str = ""
    timeout: float | None = None
    pass_environment: bool = False
    send_errors: bool = False


def make_program_agent(program: Program, name: str, description: str = "", *, streaming: bool = True) -> Agent:
    """The agent."""
    text = description or "Runs a program on what it is told"
    agent = Agent(name, description=text, streaming=streaming)

    async def run(ctx: Context) -> AsyncGenerator[str, None]:
        async with contextlib.aclosing(_run(program, ctx)) as pieces:
            async for piece in pieces:
                yield piece

    agent.task(id="run", name="Run", description=text, tags=["program"])(run)
    return agent


async def _run(program: Program, ctx: Context) -> AsyncGenerator[str, None]:
    """One run of the program; ends it whenever this ends."""
    process = await _start(program, ctx)
    errors: deque[str] = deque(maxlen=_KEPT_LINES)
    feeding = asyncio.create_task(_feed(process, ctx.text.encode("utf-8", "replace")))
    listening = asyncio.create_task(_listen(process, errors))
    try:
        async with asyncio.timeout(program.timeout):
            async for piece in _pieces(process, program.delimiter):
                yield piece
            status = await process.wait()
            await listening
    except TimeoutError:
        raise Fail(f"The program took longer than {program.timeout:g} s") from None
    finally:
        await _end(process)
        feeding.cancel()
        listening.cancel()
        await asyncio.gather(feeding, listening, return_exceptions=True)
    if status != 0:
        raise Fail(_words(status, errors if program.send_errors else ()))


async def _start(program: Program, ctx: Context) -> Process:
    environment = _environment(os.environ, everything=program.pass_environment)
    environment |= {
        "A2A_TASK_ID": ctx.task_id,
        "A2A_CONTEXT_ID": ctx.context_id,
        "A2A_MESSAGE_ID": ctx.message.message_id,
    }
    own_group = sys.platform != "win32"
    try:
        if program.arguments:
            return await asyncio.create_subprocess_exec(
                *program.arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=own_group
            )
        return await asyncio.create_subprocess_shell(
            program.command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=own_group
        )
    except OSError as error:
        logger.error("the program could not be started: %s", error)
        raise Fail("The program could not be started") from error


def _environment(own: Mapping[str, str], *, everything: bool) -> dict[str, str]:
    if everything:
        return {name: value for name, value in own.items() if not name.startswith(_NEVER_PASSED)}
    return {name: own[name] for name in _PASSED if name in own}


async def _feed(process: Process, data: bytes) -> None:
    """Give the program its input. It may end without reading all of it."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _listen(process: Process, errors: deque[str]) -> None:
    """Log standard error line by line, and keep the last ones."""
    assert process.stderr is not None
    rest = b""
    while data := await process.stderr.read(_READ):
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[-_LONGEST_LINE:]
        for line in lines:
            _note(line, errors)
    if rest:
        _note(rest, errors)


def _note(line: bytes, errors: deque[str]) -> None:
    text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
    errors.append(text)
    logger.info("program: %s", text.encode("unicode_escape").decode())


async def _pieces(process: Process, delimiter: str) -> AsyncGenerator[str, None]:
    """Standard output as text: as it comes, or cut behind each delimiter."""
    assert process.stdout is not None
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting = ""
    while data := await process.stdout.read(_READ):
        waiting += decoder.decode(data)
        if not delimiter:
            ready, waiting = [waiting], ""
        else:
            *ready, waiting = waiting.split(delimiter)
            ready = [piece + delimiter for piece in ready]
            if len(waiting) > _LONGEST_PIECE:
                ready, waiting = [*ready, waiting], ""
        for piece in ready:
            if piece:
                yield piece
    waiting += decoder.decode(b"", final=True)
    if waiting:
        yield waiting


async def _end(process: Process) -> None:
    """End the program and what it started: asked first, then killed."""
    if process.returncode is None:
        _signal(process, "SIGTERM")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE)
    # Also what outlived the program itself.
    _signal(process, "SIGKILL")
    await process.wait()


def _signal(process: Process, name: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            if process.returncode is None:
                process.kill()
        else:
            os.killpg(process.pid, getattr(signal, name))


def _words(status: int, errors: Sequence[str] | deque[str]) -> str:
    if status < 0:
        try:
            what = f"The program was ended by {signal.Signals(-status).name}"
        except ValueError:
            what = f"The program was ended by signal {-status}"
    else:
        what = f"The program ended with status {status}"
    return "\n".join([what + (":" if errors else ""), *errors])
