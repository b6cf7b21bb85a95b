"""``dragoman agentcore``: an agent behind a stand-in for AgentCore, and the recipe of its container.

Spec: AC-F-01 to AC-F-15, AC-S-06, AC-S-07.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.clean import one_line
from dragoman.cli.container import EXTRAS, OWN, make_files
from dragoman.cli.failures import FileError, UsageError
from dragoman.cli.loading import load
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.output import Screen

if TYPE_CHECKING:
    from dragoman.testing.agentcore_front import Front

AUDIENCE = "rehearsal"
_TARGET = re.compile(r"[\w./-]+(:\w+)?")


# dev


def _dev(
    run: Run,
    target: str,
    sigv4: bool,
    jwt: bool,
    port: int,
    allow_header: Sequence[str],
    idle: float,
    store: str | None,
) -> int:
    if sigv4 and jwt:
        raise UsageError("--sigv4 and --jwt exclude each other: a runtime takes the one or the other")
    logging.basicConfig(level="WARNING", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    load(target)  # so that what is wrong with it is told now, and not by the first call
    return asyncio.run(_rehearse(target, "sigv4" if sigv4 else "jwt" if jwt else "", port, allow_header, idle, store))


async def _rehearse(target: str, mode: str, port: int, allowed: Sequence[str], idle: float, store: str | None) -> int:
    from dragoman.testing.agentcore_front import Front, FrontSettings, Jwt, Lifecycle, PerSession, SigV4

    screen = Screen.standard()
    auth = (
        SigV4() if mode == "sigv4" else Jwt("https://login.rehearsal.invalid", audiences=[AUDIENCE]) if mode else None
    )
    settings = FrontSettings(allow_list=tuple(allowed), lifecycle=Lifecycle(idle_s=idle))
    upstream = PerSession.of_agent(target, *(("--store", store) if store else ()))

    def output(session: str, line: str) -> None:
        screen.tell(f"[{session[-8:]}] {one_line(line)}\n")

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Front(upstream, auth=auth, settings=settings, port=port, output=output) as front:
        token = auth.mint(time.time(), lifetime=24 * 3_600) if isinstance(auth, Jwt) else ""
        screen.write(_how_to_call(front, target, mode, token))
        await stopped.wait()
    for violation in front.violations:
        screen.tell(f"Note: the agent broke the contract of the platform: {violation}\n")
    return 0


def _how_to_call(front: Front, target: str, mode: str, token: str) -> str:
    """What is printed when it serves."""
    kind = {"sigv4": "signed requests (SigV4)", "jwt": "bearer tokens (JWT)"}.get(mode, "calls of everybody")
    lines = [
        f"A stand-in for AgentCore takes {kind} for {target}, in a process for each session",
        f"  arn    {front.arn}",
        f"  url    {front.invocation_url}",
        f"  call   {_command(front, mode, token)}",
        "  stop   Ctrl-C",
    ]
    return "".join(f"{line}\n" for line in lines)


def _command(front: Front, mode: str, token: str) -> str:
    from dragoman.testing.agentcore_front import REHEARSAL_KEY

    send = f"dragoman send --arn {front.arn} --endpoint-url {front.url}"
    if mode == "sigv4":
        keys = {"AWS_ACCESS_KEY_ID": REHEARSAL_KEY.key_id, "AWS_SECRET_ACCESS_KEY": REHEARSAL_KEY.secret}
        return f"{_variables(keys)} {send} hello"
    return f"{send} --bearer {token} hello" if mode else f"{send} hello"


def _variables(given: Mapping[str, str]) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in given.items())


# init


def _init(run: Run, folder: str, agent: str, extra: Sequence[str], force: bool) -> int:
    if not _TARGET.fullmatch(agent):
        raise UsageError(f"{agent!r} does not name an agent: --agent MODULE:AGENT")
    place = Path(folder)
    made = make_files(agent, extras=tuple(extra) or EXTRAS, own_requirements=(place / OWN).is_file())
    there = [name for name in made if (place / name).exists()]
    if there and not force:
        raise FileError(f"{place / there[0]} is there already, and nothing was written", hint="add --force to replace")
    try:
        for name, text in made.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot write to {place}: {error.strerror}") from error
    screen = Screen.standard()
    for name in made:
        screen.write(f"{place / name}\n")
    return 0


DEV = Leaf(
    "dev",
    _dev,
    "Run an agent behind a stand-in for Amazon Bedrock AgentCore, on this machine and without an account: the same "
    "addresses, authentication, sessions and errors, and a process for each session. MODULE:AGENT says where it is.",
    [
        click.Argument(["target"], metavar="MODULE:AGENT"),
        option("--sigv4", is_flag=True, help="Take requests that are signed with AWS keys (extra agentcore)."),
        option("--jwt", is_flag=True, help="Take bearer tokens."),
        option(
            "--port", metavar="PORT", type=click.IntRange(0, 65535), default=9080, help="Port to listen on; 0: any."
        ),
        option("--allow-header", metavar="NAME", multiple=True, help="Header that reaches the agent; repeatable."),
        option(
            "--idle",
            metavar="SECONDS",
            type=click.FloatRange(min=1),
            default=900,
            help="Seconds without work after which a session ends.",
        ),
        option("--store", metavar="PLACE", help="Where the agent keeps tasks, as for dragoman run."),
    ],
    calls_agents=False,
    examples=(
        "dragoman agentcore dev echo:agent --sigv4",
        "dragoman agentcore dev echo:agent --allow-header A2A-Version",
    ),
)

INIT = Leaf(
    "init",
    _init,
    "Write what makes a container of an agent for Amazon Bedrock AgentCore: a Dockerfile for ARM64, .dockerignore, "
    "pinned requirements, and DEPLOY.md, which says what to do with them. Replaces nothing without --force.",
    [
        click.Argument(["folder"], metavar="[DIR]", required=False, default="."),
        option("--agent", metavar="MODULE:AGENT", default="agent:agent", help="The agent that the container runs."),
        option(
            "--extra",
            metavar="NAME",
            multiple=True,
            help="Extra of dragoman to install; repeatable. [default: cli, sql]",
        ),
        option("--force", is_flag=True, help="Replace files that are there."),
    ],
    calls_agents=False,
    examples=("dragoman agentcore init --agent tides:agent",),
)
