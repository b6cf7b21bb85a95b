"""Idempotent sends: a message that comes again begins nothing anew.

Theory. The key of a message is its caller, tenant and ``messageId``. The id of the task that a message begins is made
from the key, so that the task itself is the record of it: it is as durable as the store, the same for all processes on
that store, and goes with the task. A message for a task that exists is in the task's history. What is under way, and
direct replies, which no store has, are remembered in memory, some of them and for the window.

The client's half sends a message again, the same one, when the connection broke before anything was answered.

Spec: SEND-01, STREAM-04, AMB-05, EXT-02, EXT-12.
"""

from __future__ import annotations

from dragoman.errors import ConfigurationError
from dragoman.extensions.again import Again
from dragoman.extensions.calling import ClientExtension
from dragoman.extensions.hooks import Hooks
from dragoman.extensions.retrying import Retrying
from dragoman.extensions.serving import ServerExtension
from dragoman.protocol.extensions import IDEMPOTENT_SENDS

DAY = 24 * 3600.0


class IdempotentSends(ServerExtension, ClientExtension):
    """Idempotent sends, on the server and on the client.

    On the server: ``window`` is how many seconds after its end a task still stands for its message, default a day, as
    long as the store has it; ``remembered`` is how many direct replies are kept for that, default 1000.

    On the client: ``attempts`` is how often a message is sent again after a broken connection, default 4, the first
    time after about ``pause`` seconds (default 0.2), each time after twice as long, 10 at most.
    """

    uri = IDEMPOTENT_SENDS
    description = "A message that is sent again is answered with the task that it began."

    def __init__(self, *, window: float = DAY, remembered: int = 1000, attempts: int = 4, pause: float = 0.2) -> None:
        if window <= 0 or remembered < 1 or attempts < 0 or pause < 0:
            raise ConfigurationError(
                "idempotent sends: window and remembered must be positive, attempts and pause 0 or more"
            )
        self._window = window
        self._remembered = remembered
        self._attempts = attempts
        self._pause = pause

    def serving(self, agent: str) -> Hooks:
        """See :class:`~dragoman.extensions.ServerExtension`."""
        return Again(agent, self._window, self._remembered)

    def calling(self) -> Hooks:
        """See :class:`~dragoman.extensions.ClientExtension`."""
        return Retrying(self._attempts, self._pause)
