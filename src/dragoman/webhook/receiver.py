"""The receiver of push notifications: a webhook as a plain function, and as an ASGI app.

Theory. A notification that was refused, or that the function did not take, is sent again; so nothing is said to be
taken before the function has returned, and nothing that it has taken is handed to it once more. Two requests with the
same notification at the same time are one call of the function, with one answer to both.

Spec: PUSH-11 to PUSH-18, PUSH-21, AMB-66 to AMB-70.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Literal

from dragoman.errors import ConfigurationError, OutboundUrlError, PayloadTooLargeError
from dragoman.http.asgi import ClientGoneError, Headers, Receive, Scope, Send, read_body, relative_path
from dragoman.http.client import HttpClient
from dragoman.http.guard import is_loopback_host, parse_target, shown
from dragoman.model import AuthenticationInfo, Task
from dragoman.ports.clock import Clock, SystemClock
from dragoman.webhook.checking import Checked, Checks, Head, Tasks
from dragoman.webhook.expected import Expected
from dragoman.webhook.memory import Memory
from dragoman.webhook.notification import Notification
from dragoman.webhook.rates import Rates
from dragoman.webhook.refusals import (
    TAKEN,
    Answer,
    Refusal,
    not_now,
    too_large,
    too_many,
    too_slow,
    wrong_method,
    wrong_path,
)
from dragoman.webhook.settings import ReceiverSettings
from dragoman.webhook.signatures import SenderKeys

logger = logging.getLogger("dragoman.webhook")

Handler = Callable[[Notification], object]
"""Called with each notification in the event loop; may return an awaitable, which is then awaited."""


class Receiver:
    """Takes push notifications: verifies them, drops what came before, and hands the rest to a function.

    * ``handler``: the function. When it raises, the sender is told to try again later, and it is called again then.
      None: nobody but those who :meth:`expect` a task;
    * ``url``: the address that agents are told, https unless it is of this machine (Spec: PUSH-16);
    * ``token``: what notifications have to bring in ``X-A2A-Notification-Token``, one or several (Spec: PUSH-14);
    * ``authentication``: the scheme and credentials that they have to bring in ``Authorization``, one or several;
    * ``keys``: whose signatures they have to bring (extra ``auth``);
    * ``tasks``: which tasks they may be about: a container of ids, a function of an id, or ``"any"``. None, the
      default: only those that somebody expects (Spec: PUSH-13);
    * ``anonymous``: take notifications without any proof, which anybody can make up;
    * ``path``: as an ASGI app, the one path below the mount that is the webhook; None: every one.

    All kinds of proof that are set are needed together. Raises ConfigurationError when ``tasks`` is set without any,
    and ``anonymous`` is not.

    It may be mounted in a Starlette or FastAPI app, or served by itself. What it remembers is within one process: a
    function whose work must not be done twice keeps :attr:`Notification.id` with what it stores (Spec: PUSH-12).
    """

    def __init__(
        self,
        handler: Handler | None = None,
        *,
        url: str = "",
        token: str | Sequence[str] = (),
        authentication: AuthenticationInfo | Sequence[AuthenticationInfo] = (),
        keys: SenderKeys | None = None,
        tasks: Container[str] | Tasks | Literal["any"] | None = None,
        anonymous: bool = False,
        path: str | None = None,
        settings: ReceiverSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings = settings or ReceiverSettings()
        self.url = url
        self._handler = handler
        self._path = path
        self._clock = clock or SystemClock()
        tokens = (token,) if isinstance(token, str) else tuple(token)
        infos = (authentication,) if isinstance(authentication, AuthenticationInfo) else tuple(authentication)
        _check_address(url)
        _check_secrets(tokens, infos)
        if tasks is not None and not (tokens or infos or keys or anonymous):
            raise ConfigurationError(
                "webhook: say what proves notifications to be genuine: token, authentication or keys"
            )
        self._checks = Checks(
            url=url, tokens=tokens, authentication=infos, keys=keys, tasks=_tasks(tasks), settings=settings
        )
        self._rates = Rates(settings.rate, settings.burst)
        self._memory = Memory(settings.remembered)
        self._running: dict[tuple[str, str, str], asyncio.Future[bool]] = {}
        self._busy = 0
        self._http: HttpClient | None = None

    def expect(self, task: Task | str = "") -> Expected:
        """Expect the notifications of one more task, or of one that a message is going to open.

        Needs ``url``. See :class:`Expected`: its ``config`` is what the agent is given.
        """
        return self._checks.expect(task if isinstance(task, str) else task.id)

    async def aclose(self) -> None:
        """Close the connection to those who publish keys."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    # As a function.

    async def receive(
        self, headers: Mapping[str, str] | Iterable[tuple[str, str]], body: bytes, peer: str = ""
    ) -> Answer:
        """Take one request; returns what to answer. For servers that are not ASGI.

        ``peer`` is the address of the sender, for the limit of requests. Raises nothing but what cancels it.
        """
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        lower = {name.lower(): value for name, value in pairs}
        try:
            self._check_rate(peer)
            return await self._take(self._checks.check_head(lower), body)
        except Refusal as refusal:
            return _refused(refusal)

    def _check_rate(self, peer: str) -> None:
        wait = self._rates.take(peer, time.monotonic())
        if wait:
            raise too_many(wait)

    async def _take(self, head: Head, body: bytes) -> Answer:
        now = self._clock.now_ms() / 1000
        keys = self._checks.keys
        found = [] if head.signed is None or keys is None else await keys.find(head.signed.kid, self._door())
        await self._hand_over(self._checks.check_body(head, body, found, now))
        return TAKEN

    def _door(self) -> HttpClient:
        self._http = self._http or HttpClient()
        return self._http

    async def _hand_over(self, checked: Checked) -> None:
        """Have the function called once for a notification, whoever else brings it. Raises Refusal."""
        notification, webhook = checked.notification, checked.webhook
        if self._memory.is_past(webhook, notification.sequence) or self._memory.has(webhook, notification.id):
            return
        key = (*webhook, notification.id)
        running = self._running.get(key) if notification.id else None
        if running is not None:
            if not await asyncio.shield(running):
                raise not_now("the function did not take it")
            return
        outcome = self._running[key] = asyncio.get_running_loop().create_future()
        try:
            await self._call(notification)
            if notification.id:
                self._memory.learn(webhook, notification.id, notification.sequence)
            if checked.expected is not None:
                checked.expected.tell(notification)
            outcome.set_result(True)
        finally:
            if not outcome.done():
                outcome.set_result(False)
            if self._running.get(key) is outcome:
                del self._running[key]

    async def _call(self, notification: Notification) -> None:
        if self._handler is None:
            return
        if self._busy >= self.settings.running:
            raise not_now("too many calls of the function are running")
        self._busy += 1
        try:
            result = self._handler(notification)
            if inspect.isawaitable(result):
                await result
        except Exception as error:
            logger.exception("The function did not take a notification of task %.80r", notification.task_id)
            raise not_now("the function did not take it") from error
        finally:
            self._busy -= 1

    # As an ASGI app.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection scope."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                answer = await self._serve(scope, receive)
            except ClientGoneError:
                return
            await _send(answer, send)
        else:
            raise ConfigurationError(f"a webhook does not serve {scope['type']!r}")

    async def _serve(self, scope: Scope, receive: Receive) -> Answer:
        try:
            if self._path is not None and (relative_path(scope) or "/") != self._path:
                raise wrong_path()
            if scope["method"] != "POST":
                raise wrong_method()
            self._check_rate((scope.get("client") or ("",))[0])
            headers = Headers(scope["headers"])
            head = self._checks.check_head(headers)
            return await self._take(head, await self._read(receive, headers.get("content-length")))
        except Refusal as refusal:
            return _refused(refusal)

    async def _read(self, receive: Receive, declared: str | None) -> bytes:
        limit = self.settings.max_body_bytes
        try:
            async with asyncio.timeout(self.settings.read_timeout):
                return await read_body(receive, limit, declared.encode("latin-1") if declared else None)
        except PayloadTooLargeError as error:
            raise too_large(limit) from error
        except TimeoutError as error:
            raise too_slow() from error

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})


def _tasks(given: Container[str] | Tasks | Literal["any"] | None) -> Tasks | None:
    if given == "any":
        return lambda task_id: True
    if isinstance(given, str):
        raise ConfigurationError('webhook: tasks must be ids in a container, a function, or "any"')
    if given is None or callable(given):
        return given
    return lambda task_id: task_id in given


def _check_secrets(tokens: Sequence[str], infos: Sequence[AuthenticationInfo]) -> None:
    """An empty secret would be one that everybody has."""
    if not all(tokens) or not all(info.scheme and info.credentials for info in infos):
        raise ConfigurationError("webhook: a token, a scheme or credentials are empty")


def _check_address(url: str) -> None:
    """Spec: PUSH-16."""
    if not url:
        return
    try:
        target = parse_target(url)
    except OutboundUrlError as error:
        raise ConfigurationError(f"webhook: url: {error}") from error
    if target.scheme != "https" and not is_loopback_host(target.host):
        logger.warning("The webhook %s is not https: tokens and contents can be read on the way", shown(url))


def _refused(refusal: Refusal) -> Answer:
    logger.info("A notification was answered with %d: %s", refusal.answer.status, refusal)
    return refusal.answer


async def _send(answer: Answer, send: Send) -> None:
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
