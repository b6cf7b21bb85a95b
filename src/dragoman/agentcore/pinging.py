"""``GET /ping`` as a resource. No lock that others hold, no I/O, nothing that grows.

Spec: AC-S-12, AC-S-19, AC-S-60, AC-S-69.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from dragoman.agentcore.answers import answer_json
from dragoman.agentcore.ping import Report
from dragoman.http.asgi import Scope, Send

logger = logging.getLogger("dragoman.agentcore")

_UNREADY = b'{"reason":"not ready"}'
_NOT_ALLOWED = b'{"reason":"method not allowed"}'


class PingResource:
    """Answers pings with a report, which ``read`` gives; None is answered with 503."""

    def __init__(self, read: Callable[[], Awaitable[Report | None]]) -> None:
        self._read = read

    async def __call__(self, scope: Scope, send: Send) -> None:
        """Answer one ping."""
        if scope["method"] not in ("GET", "HEAD"):
            await answer_json(scope, send, 405, _NOT_ALLOWED, (b"allow", b"GET, HEAD"))
            return
        report = await self._read()
        if report is None:
            logger.info("A ping was answered with 503: not ready")
            await answer_json(scope, send, 503, _UNREADY)
        else:
            await answer_json(scope, send, 200, report.encode())


class _WithoutPings(logging.Filter):
    """Lets all pass but the lines of successful pings, as uvicorn writes them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is kept."""
        args = record.args
        if not isinstance(args, tuple) or len(args) < 5:
            return True
        path, status = str(args[2]).partition("?")[0], args[4]
        return not (path.endswith("/ping") and status == 200)


def quiet_access_log() -> None:
    """Keep successful pings out of uvicorn's access log. Safe to call twice."""
    log = logging.getLogger("uvicorn.access")
    if not any(isinstance(known, _WithoutPings) for known in log.filters):
        log.addFilter(_WithoutPings())
