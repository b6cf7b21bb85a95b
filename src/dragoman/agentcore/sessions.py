"""Sessions: which one a call belongs to.

Theory. A session is a process with private memory, so whatever is about a task has to reach the session in which the
task was made, and a further message of a context the session of that context. One client has one session of its own
for everything new. What is remembered is bounded; the oldest goes first.

Spec: AC-C-10 to AC-C-16, AC-C-44.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import uuid
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from dragoman.errors import ConfigurationError

logger = logging.getLogger("dragoman.agentcore")

SHORTEST, LONGEST, SAFE_LENGTH = 33, 256, 100
_REMEMBERED = 10_000
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)


def new_session_id() -> str:
    """A fresh id out of the system's randomness."""
    return str(uuid.uuid4())


def check_session_id(session_id: str) -> str:
    """The id, if the service takes it: 33 to 256 printable characters.

    Raises ConfigurationError otherwise; logs a warning for one that is allowed but may make trouble. Spec: AC-C-11.
    """
    if not SHORTEST <= len(session_id) <= LONGEST:
        raise ConfigurationError(f"a session id has {SHORTEST} to {LONGEST} characters, this one {len(session_id)}")
    if not session_id.isascii() or not session_id.isprintable() or " " in session_id:
        raise ConfigurationError("a session id is printable ASCII without blanks")
    if len(session_id) > SAFE_LENGTH or not _SAFE.fullmatch(session_id):
        logger.warning(
            "a session id is safest with 33 to %d letters, digits, '-' and '_', beginning with one of the first two",
            SAFE_LENGTH,
        )
    return session_id


class Derivation(msgspec.Struct, frozen=True):
    """Makes the session id out of who calls and the context, so that a gateway without memory finds it again.

    ``key`` is a secret of the gateway, at least 16 bytes, the same on all its machines; ``caller`` is the identity that
    is called for, when one client serves one. Spec: AC-C-16.
    """

    key: bytes
    caller: str = ""

    def __post_init__(self) -> None:
        if len(self.key) < 16:
            raise ConfigurationError("the key of a Derivation has at least 16 bytes")

    def __repr__(self) -> str:
        return f"Derivation(<hidden>, {self.caller!r})"

    def session_id(self, context_id: str, caller: str | None = None) -> str:
        """The session id for a context: 64 hexadecimal digits."""
        who = (self.caller if caller is None else caller).encode()
        text = b"%d:%b%b" % (len(who), who, context_id.encode())
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """What another process needs to go on: the session of new calls, sessions of contexts, those of open tasks.

    ``identity`` is a fingerprint of whose credentials they were used with, empty when that is not known. Write it with
    ``msgspec.json.encode``. It is no secret, yet whoever has it and permission to call can enter the sessions.
    """

    session_id: str = ""
    contexts: dict[str, str] = {}
    tasks: dict[str, str] = {}
    identity: str = ""


class Sessions:
    """The sessions of one client. ``current`` is that of new calls; empty: the service allocates one (AC-C-12)."""

    def __init__(self, current: str, *, derivation: Derivation | None = None, limit: int = _REMEMBERED) -> None:
        self.current = current
        self.derivation = derivation
        self.identity = ""
        self._limit = limit
        self._contexts: OrderedDict[str, str] = OrderedDict()
        self._tasks: OrderedDict[str, str] = OrderedDict()
        self._over: set[str] = set()
        self._stopped: OrderedDict[str, None] = OrderedDict()
        self._named: OrderedDict[str, str] = OrderedDict()

    def choose(self, task_id: str = "", context_id: str = "") -> str:
        """The session of a call about a task or a context. Spec: AC-C-13."""
        found = self._tasks.get(task_id) or self._contexts.get(context_id)
        if found:
            return found
        if context_id and self.derivation is not None:
            return self.resolve(self.derivation.session_id(context_id))
        return self.current

    def resolve(self, session_id: str) -> str:
        """The session that the service made of one; the current one for none."""
        return self._named.get(session_id, session_id) or self.current

    def of_task(self, task_id: str) -> str:
        """The session in which a task was seen, or empty."""
        return self._tasks.get(task_id, "")

    def learn(self, session_id: str, *, task_id: str = "", context_id: str = "", over: bool = False) -> None:
        """Remember where a task and a context are."""
        if task_id and task_id not in self._tasks:
            self._remember(self._tasks, task_id, session_id)
        if context_id and context_id not in self._contexts:
            self._remember(self._contexts, context_id, session_id)
        if over and task_id in self._tasks:
            self._over.add(task_id)

    def adopt(self, sent: str, got: str) -> None:
        """Take the session that the service names in an answer. Spec: AC-C-12."""
        if not got or got == sent:
            return
        if not _SAFE.fullmatch(got) or len(got) > LONGEST:
            logger.warning("an answer names a session whose id cannot be used")
            return
        self._named[sent] = got
        self._shorten(self._named)
        if sent:
            logger.warning("the service answered from session %s instead of %s, which is used from now on", got, sent)
        if self.current == sent:
            self.current = got
        for known in (self._contexts, self._tasks):
            for name in [name for name, session in known.items() if session == sent]:
                known[name] = got

    def note_stopped(self, session_id: str) -> None:
        """Note that a session was stopped: its memory is gone, though its id may be used again."""
        self._stopped[session_id] = None
        self._shorten(self._stopped)

    def was_stopped(self, session_id: str) -> bool:
        """Whether a session was stopped by this client."""
        return session_id in self._stopped

    def all(self) -> set[str]:
        """Every session that is known."""
        return {*self._contexts.values(), *self._tasks.values(), self.current} - {""}

    def export(self) -> SessionState:
        """What another process needs to go on. Tasks that are over are left out. Spec: AC-C-14."""
        tasks = {task: session for task, session in self._tasks.items() if task not in self._over}
        return SessionState(session_id=self.current, contexts=dict(self._contexts), tasks=tasks, identity=self.identity)

    def load(self, state: SessionState) -> None:
        """Take what another process exported. Raises ConfigurationError for ids that are none."""
        for session_id in {*state.contexts.values(), *state.tasks.values()}:
            check_session_id(session_id)
        self._contexts.update(state.contexts)
        self._tasks.update(state.tasks)

    def _remember(self, known: OrderedDict[str, str], name: str, session_id: str) -> None:
        known[name] = session_id
        for lost in self._shorten(known):
            self._over.discard(lost)

    def _shorten(self, known: OrderedDict[str, str] | OrderedDict[str, None]) -> list[str]:
        return [known.popitem(last=False)[0] for _ in range(len(known) - self._limit)]


class Owners:
    """Who uses which session, in this process. Spec: AC-C-14."""

    def __init__(self) -> None:
        self._owners: dict[str, tuple[str, int]] = {}

    def claim(self, session_id: str, identity: str, refuse: Callable[[], Exception]) -> Callable[[], None]:
        """Note that a session is used under an identity; call what is returned when it no longer is.

        Raises what ``refuse`` makes when it is used under another one at the time.
        """
        owner, count = self._owners.get(session_id, (identity, 0))
        if owner != identity:
            raise refuse()
        self._owners[session_id] = owner, count + 1
        return lambda: self._release(session_id)

    def _release(self, session_id: str) -> None:
        owner, count = self._owners[session_id]
        if count > 1:
            self._owners[session_id] = owner, count - 1
        else:
            del self._owners[session_id]
