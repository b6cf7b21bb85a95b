"""``dragoman webhook listen``: a webhook that prints what it is told.

Spec: A2ACLI_PUSH_002, PUSH-11 to PUSH-18; section 14.16 of the register of the command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Sequence

import click

from dragoman.bindings.settings import EndpointSettings
from dragoman.cli import text, values
from dragoman.cli.failures import TimeLimitError, UsageError
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.output import ClosedOutputError
from dragoman.cli.program import run_client
from dragoman.cli.secrets import authentication_of, learn, no_limit_unless_asked, secret_of, warn_of_plain
from dragoman.cli.session import Session
from dragoman.http.asgi import Receive, Scope, Send
from dragoman.http.guard import is_loopback_host, parse_target
from dragoman.protocol.lifecycle import is_terminal
from dragoman.server import ServerTls
from dragoman.server.serving import base_url, listen, serve
from dragoman.webhook import Notification, Receiver, SenderKeys

_LOST = 2.0


class _Listening:
    """A receiver in the shape of what can be served."""

    scopes = frozenset({"http"})
    settings = EndpointSettings()
    shutdown_grace = _LOST

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def start(self) -> None:
        """Nothing has to be opened."""

    def begin_stop(self) -> None:
        """What is under way is quick."""

    async def stop(self) -> None:
        """Close what fetches keys."""
        await self._receiver.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        await self._receiver(scope, receive, send)


class _Printer:
    """Prints notifications, and knows when it was enough: after a number of them, or when all named tasks are over."""

    def __init__(self, session: Session, tasks: Sequence[str], count: int | None) -> None:
        self._session = session
        self._open = set(tasks)
        self._named = bool(tasks)
        self._left = count
        self.enough = asyncio.Event()
        self.lost: ClosedOutputError | None = None

    def take(self, notification: Notification) -> None:
        """Print one. Raises ClosedOutputError when nobody reads, so that the sender keeps it."""
        if self.enough.is_set():
            raise RuntimeError("enough was taken")
        try:
            self._print(notification)
        except ClosedOutputError as error:
            self.lost = error
            self.enough.set()
            raise
        if notification.state is not None and is_terminal(notification.state):
            self._open.discard(notification.task_id)
        if self._left is not None:
            self._left -= 1
        if self._left == 0 or (self._named and not self._open):
            self.enough.set()

    def _print(self, notification: Notification) -> None:
        output = self._session.output
        if output.json:
            output.struct(notification.response)
        else:
            output.record(text.event_record(notification.event, verbose=self._session.verbose))


def _listen(
    run: Run,
    host: str,
    port: int,
    path: str,
    token_env: str | None,
    auth_scheme: str | None,
    auth_credentials_env: str | None,
    jwks: str | None,
    task_id: Sequence[str],
    count: int | None,
    public_url: str | None,
    tls_cert: str | None,
    tls_key: str | None,
) -> int:
    if bool(tls_cert) != bool(tls_key):
        raise UsageError("TLS needs --tls-cert and --tls-key")
    if not path.startswith("/"):
        raise UsageError("--path begins with a slash")
    if count == 0:
        raise UsageError("--count must be 1 or more")
    token = secret_of("--token", token_env)
    credentials = secret_of("--auth-credentials", auth_credentials_env)
    info = authentication_of(auth_scheme, credentials)
    if info is not None and not credentials:
        raise UsageError("--auth-scheme needs --auth-credentials-env")
    tls = ServerTls(certificate=tls_cert, key=tls_key) if tls_cert and tls_key else None
    keys = SenderKeys(_key_source(jwks)) if jwks else None
    limit = no_limit_unless_asked(run)

    async def body(session: Session) -> int:
        learn(session, token, credentials)
        _say_what_is_refused(session)
        _leave_signals_to_the_server()
        listening = listen(host, port)
        address = public_url or base_url(listening, tls=tls is not None) + path
        printer = _Printer(session, task_id, count)
        receiver = Receiver(
            printer.take,
            url=address,
            token=token or (),
            authentication=info or (),
            keys=keys,
            tasks=set(task_id) or "any",
            anonymous=True,
            path=path,
        )

        def announce() -> None:
            _announce(session, address, host, proven=bool(token or info or keys))

        serving = asyncio.create_task(serve(_Listening(receiver), listening, tls=tls, on_ready=announce))
        return await _until_enough(printer, serving, limit)

    return run_client(run, body, stream=True)


def _key_source(given: str) -> str | bytes:
    """An address, or the content of a file."""
    if given.startswith(("https://", "http://")):
        return given
    try:
        with open(given, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise UsageError(f"--jwks: cannot read {given}: {error.strerror}") from None


async def _until_enough(printer: _Printer, serving: asyncio.Task[None], limit: float | None) -> int:
    """Serve until there was enough, the time is over, or a signal comes, which is an order to end and no failure."""
    enough = asyncio.create_task(printer.enough.wait())
    try:
        done, _ = await asyncio.wait({enough, serving}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
    finally:
        enough.cancel()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    if printer.lost is not None:
        raise printer.lost
    if not done:
        raise TimeLimitError(f"not everything was told within {values.show_duration(limit or 0)}")
    return 0


def _announce(session: Session, address: str, host: str, *, proven: bool) -> None:
    session.notes.say("Webhook", address)
    if not proven:
        session.notes.warn("notifications need no proof, so that anybody can make them up; set --token-env")
    if not is_loopback_host(host):
        session.notes.note(f"listening on {host}: others than this machine can reach it")
    if not is_loopback_host(parse_target(address).host):
        warn_of_plain(session, address)


def _leave_signals_to_the_server() -> None:
    """So that they are an order to end; to other commands they are a failure."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if sys.platform != "win32":
            asyncio.get_running_loop().remove_signal_handler(number)


def _say_what_is_refused(session: Session) -> None:
    """One line on standard error for each request that is refused."""

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno == logging.INFO:
                session.notes.note(record.getMessage())

    logger = logging.getLogger("dragoman.webhook")
    logger.handlers = [Told()]
    logger.setLevel(logging.INFO)
    logger.propagate = False


LISTEN = Leaf(
    "listen",
    _listen,
    "Wait for push notifications of agents, and print each that is genuine, once: records, or one StreamResponse of "
    "JSON on a line. Ends after --count of them, when every task of --task-id is over, or by Ctrl-C.",
    [
        option("--host", metavar="HOST", default="127.0.0.1", help="Address to listen on."),
        option(
            "--port", metavar="PORT", type=click.IntRange(0, 65535), default=9000, help="Port to listen on; 0: any."
        ),
        option("--path", metavar="PATH", default="/", help="Path of the webhook."),
        option("--token-env", metavar="VARIABLE", help="Variable that holds the token that has to come."),
        option("--auth-scheme", metavar="SCHEME", help="Scheme that has to come in Authorization, such as Bearer."),
        option("--auth-credentials-env", metavar="VARIABLE", help="Variable that holds what has to come behind it."),
        option(
            "--jwks", metavar="URL|FILE", help="Keys of the sender, by one of which notifications have to be signed."
        ),
        option("--task-id", metavar="ID", multiple=True, help="Take only notifications of this task; repeatable."),
        option("--count", read=values.read_count, metavar="N", help="End after so many."),
        option("--public-url", metavar="URL", help="The address by which agents come, which signatures name."),
        option("--tls-cert", metavar="FILE", help="Certificate chain in PEM, to listen by https."),
        option("--tls-key", metavar="FILE", help="Its private key."),
    ],
    calls_agents=False,
    examples=(
        "dragoman webhook listen --token-env HOOK_TOKEN --task-id 6f0f5a0e -o json",
        "dragoman webhook listen --port 0 --count 1 --timeout 1m",
    ),
)
