"""``dragoman server``: an echo agent, or a program as an agent. Spec: A2ACLI_DEMO_SERVER_001; section 20.2."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec

from dragoman.cli import values
from dragoman.cli.clean import one_line
from dragoman.cli.echo import make_echo
from dragoman.cli.failures import UsageError
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.output import Output, Screen
from dragoman.cli.program_agent import Program, make_program_agent
from dragoman.cli.run import LISTENING, exposure
from dragoman.errors import A2AError
from dragoman.model import AgentCard, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.runtime import Limits
from dragoman.server import Agent, App
from dragoman.server.serving import base_url, listen, run_app

logger = logging.getLogger("dragoman.server")


def _server(
    run: Run,
    host: str,
    store: str,
    public_url: str | None,
    grace: float,
    port: int,
    quiet: bool,
    name: str | None,
    description: str | None,
    streaming: bool,
    max_parallel: int | None,
    echo: bool,
    **program: Any,
) -> int:
    command = program.get("exec")
    if bool(command) == echo:
        raise UsageError("a server needs --echo or --exec, one of them")
    logging.basicConfig(level="WARNING" if quiet else "INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel("WARNING")
    agent = _agent(name, description, streaming, program)
    listening = listen(host, port)
    address = public_url or base_url(listening)
    limits = (
        Limits(shutdown_grace=grace)
        if max_parallel is None
        else Limits(shutdown_grace=grace, running_tasks=max_parallel)
    )
    app = App(agent, store=store, public_url=address, limits=limits, interceptors=[_Traffic])
    json = run.configuration()["output"] == "json"

    def announce() -> None:
        _announce(app.card(address), address, exposure(listening, address), json=json)

    with contextlib.suppress(KeyboardInterrupt):
        run_app(app, listening, on_ready=announce)
    return 0


def _agent(name: str | None, description: str | None, streaming: bool, given: dict[str, Any]) -> Agent:
    command = given.get("exec")
    if not command:
        return make_echo(name or "Echo", description or "", streaming=streaming)
    program = Program(
        command=command,
        arguments=(command, *given["exec_arg"]) if given["exec_arg"] else (),
        delimiter=given["chunk"] or "",
        timeout=given["exec_timeout"],
        pass_environment=given["pass_env"],
        send_errors=given["send_stderr"],
    )
    return make_program_agent(
        program, name or command.split()[0].rpartition("/")[2], description or "", streaming=streaming
    )


def _announce(card: AgentCard, address: str, warning: str, *, json: bool) -> None:
    """The first line on standard output, for whoever waits for it."""
    screen = Screen.standard()
    place = f"{address.rstrip('/')}/.well-known/agent-card.json"
    if json:
        interfaces = [{"protocolBinding": i.protocol_binding, "url": i.url} for i in card.supported_interfaces]
        Output(screen, json=True, compact=True).document({"card": place, "interfaces": interfaces})
    else:
        screen.write(f"Agent card: {place}\n")
    screen.tell(f"Note: {warning}\n" if warning else "")


class _Traffic:
    """Writes a line for each operation to the log; ids only, and nothing that a caller said."""

    def __init__(self, inner: Operations) -> None:
        self._inner = inner

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        """See :class:`~dragoman.ports.operations.Operations`."""
        started = time.monotonic()
        try:
            response = await self._inner.call(op, request, context)
        except A2AError as error:
            _log(op, request, type(error).__name__, started)
            raise
        _log(op, request, "ok", started)
        return response

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        """See :class:`~dragoman.ports.operations.Operations`."""
        started = time.monotonic()
        try:
            stream = await self._inner.stream(op, request, context)
        except A2AError as error:
            _log(op, request, type(error).__name__, started)
            raise
        _log(op, request, "stream", started)
        return stream


def _log(op: Operation, request: msgspec.Struct, outcome: str, started: float) -> None:
    about = getattr(request, "id", "") or getattr(getattr(request, "message", None), "message_id", "")
    logger.info("%s %s %s %.0f ms", op.name, one_line(str(about))[:80], outcome, (time.monotonic() - started) * 1000)


_COMMON: Sequence[click.Parameter] = (
    *LISTENING,
    option(
        "--port",
        metavar="PORT",
        type=int,
        help="Port to listen on; 0: any free one.",
        envvar="DRAGOMAN_PORT",
        default=8080,
    ),
    option("--name", metavar="NAME", help="Name of the agent."),
    option("--description", metavar="TEXT", help="What the agent says it does."),
    option(
        "--streaming/--no-streaming", default=True, is_flag=True, help="Whether streams are offered. [default: yes]"
    ),
    option("--max-parallel", read=values.read_count, metavar="N", help="Tasks that run at the same time."),
    option("--quiet", is_flag=True, help="No line for each call on standard error."),
)

SERVER = Leaf(
    "server",
    _server,
    "Serve an agent on this machine: --echo repeats what it is told and plays every part that a client can meet; "
    "--exec makes any program an agent: the message is its standard input, and its standard output the artifact.",
    [
        option("--echo", is_flag=True, help="The echo agent; its card lists its words."),
        option("--exec", metavar="COMMAND", help="Run this by the shell for each message."),
        option(
            "--exec-arg", metavar="WORD", multiple=True, help="Argument of COMMAND, which then runs without a shell."
        ),
        option("--chunk", metavar="DELIMITER", help="Cut the output behind this. [default: as it comes]"),
        option("--exec-timeout", read=values.read_limit, metavar="DURATION", help="How long one run may take."),
        option("--pass-env", is_flag=True, help="Pass the environment on, our own variables apart."),
        option("--send-stderr", is_flag=True, help="Let callers see the last lines of standard error of a failure."),
        *_COMMON,
    ],
    calls_agents=False,
    examples=(
        "dragoman server --echo --port 0",
        'dragoman server --exec "python3 -u summarize.py" --name Summaries',
    ),
)
DEMO_SERVER = Leaf(
    "demo-server",
    lambda run, **given: _server(run, **{**given, "echo": True}),
    "The same as server --echo.",
    [option("--echo", is_flag=True, default=True, hidden=True, help="Always."), *_COMMON],
    calls_agents=False,
    examples=("dragoman demo-server --port 0",),
)
