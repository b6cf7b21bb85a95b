"""``dragoman server``: an echo agent, a program as an agent, or an agent of somewhere else.

Spec: A2ACLI_DEMO_SERVER_001; section 20.2 of the register of the command line.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from dragoman.cli import values
from dragoman.cli.clean import one_line
from dragoman.cli.echo import make_echo
from dragoman.cli.failures import UsageError
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.output import Output, Screen
from dragoman.cli.program_agent import Program, make_program_agent
from dragoman.cli.proxying import Arranged, arrange_proxy, make_proxy
from dragoman.cli.run import LISTENING, exposure, grpc_settings, plaintext
from dragoman.errors import A2AError
from dragoman.model import AgentCard, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations
from dragoman.runtime import Limits
from dragoman.server import Agent, App, Application
from dragoman.server.dialects import VERSIONS
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
    proxied = program.get("proxy")
    if [echo, bool(program.get("exec")), proxied is not None].count(True) != 1:
        raise UsageError("a server needs --echo, --exec or --proxy, one of them")
    if proxied is not None and (not streaming or max_parallel is not None):
        raise UsageError("--no-streaming and --max-parallel are not for --proxy")
    logging.basicConfig(level="WARNING" if quiet else "INFO", format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for library in ("uvicorn", "httpx2"):  # the latter tells whole addresses, with what may be a key in them
        logging.getLogger(library).setLevel("WARNING")
    grpc = grpc_settings(program)
    arranged: Arranged | None = None
    if proxied is not None:
        status, arranged = arrange_proxy(run, proxied or None)
        if arranged is None:
            return status
    listening = listen(host, port)
    address = public_url or base_url(listening)
    app: Application
    if arranged is not None:
        app = make_proxy(arranged, program, name, description, address, grace, _Traffic)
    else:
        limits = Limits(shutdown_grace=grace)
        if max_parallel is not None:
            limits = replace(limits, running_tasks=max_parallel)
        agent = _agent(name, description, streaming, program)
        versions = program["versions"] or VERSIONS
        app = App(agent, store=store, public_url=address, limits=limits, interceptors=[_Traffic], versions=versions)
    json = run.configuration()["output"] == "json"

    def announce() -> None:
        card = app.card(address)
        notes = [note for note in (exposure(listening, address), plaintext(card, grpc)) if note]
        _announce(card, address, notes, json=json)

    with contextlib.suppress(KeyboardInterrupt):
        run_app(app, listening, grpc=grpc, on_ready=announce)
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


def _announce(card: AgentCard, address: str, notes: Sequence[str], *, json: bool) -> None:
    """The first line on standard output, for whoever waits for it."""
    screen = Screen.standard()
    place = f"{address.rstrip('/')}/.well-known/agent-card.json"
    if json:
        interfaces = [
            {"protocolBinding": i.protocol_binding, "protocolVersion": i.protocol_version, "url": i.url}
            for i in card.supported_interfaces
        ]
        Output(screen, json=True, compact=True).document({"card": place, "interfaces": interfaces})
    else:
        screen.write(f"Agent card: {place}\n")
    for note in notes:
        screen.tell(f"Note: {note}\n")


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
    "--exec makes any program an agent: the message is its standard input, and its standard output the artifact; "
    "--proxy serves an agent of somewhere else again, by the bindings of this server and with the credentials given.",
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
        option(
            "--proxy",
            metavar="[REF]",
            is_flag=False,
            flag_value="",
            help="The agent to serve again, as --agent-card names one, or the one that --agent-card names.",
        ),
        option(
            "--forward-header",
            read=values.read_header_name,
            metavar="NAME",
            multiple=True,
            help="Pass this header of callers on to the agent, e.g. Authorization; repeatable. [default: none]",
        ),
        option(
            "--forward-origin",
            metavar="URL",
            multiple=True,
            help="Another origin whose interfaces may have forwarded headers; repeatable.",
        ),
        *_COMMON,
    ],
    examples=(
        "dragoman server --echo --port 0",
        'dragoman server --exec "python3 -u summarize.py" --name Summaries',
        "dragoman server --proxy https://agent.example.com --forward-header Authorization",
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
