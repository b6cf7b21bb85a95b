"""Running a hosted agent: the process that AgentCore starts in its container.

Binding and signals only; everything else is the application's.

Spec: AC-S-01 to AC-S-05, AC-S-71, AC-S-75.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable

from dragoman.agentcore.address import HOST, check_port, choose_port
from dragoman.agentcore.app import AgentCoreApp, app
from dragoman.server.app import Served

logger = logging.getLogger("dragoman.agentcore")

LAST_WAIT = 1.0
"""Seconds that Python may take to end after everything else has."""


def run(
    agent: Served | AgentCoreApp,
    *,
    host: str | None = None,
    port: int | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then end in order. Blocks.

    ``host``: default ``0.0.0.0``; ``port``: default ``A2A_PORT``, else 9000. ``on_ready`` is given the address, once
    connections are taken. Raises ConfigurationError for a port that AgentCore does not take, or that cannot be listened
    on; SystemExit with status 1 when start-up hooks fail.
    """
    from dragoman.server.serving import base_url, listen, run_app

    hosted = agent if isinstance(agent, AgentCoreApp) else app(agent)
    host = HOST if host is None else host
    port = choose_port(port, hosted.profile.environment)
    warning = check_port(host, port)
    if warning:
        logger.warning("%s", warning)
    listening = listen(host, port)
    address = base_url(listening)
    with contextlib.suppress(KeyboardInterrupt):
        run_app(hosted, listening, on_ready=None if on_ready is None else lambda: on_ready(address))


def end_process(status: int) -> None:
    """See that this process ends within a second, although threads of the author's may not return.

    Call it last: Python waits for such threads at its end, and this does not.
    """
    threading.Thread(target=_end_for_sure, args=(status,), name="dragoman-end", daemon=True).start()


def _end_for_sure(status: int) -> None:
    time.sleep(LAST_WAIT)
    logger.error("Threads of the agent do not return; the process ends without them")
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)
