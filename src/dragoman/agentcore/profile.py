"""What the AgentCore profile can be told; every value of the preset, one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dragoman.agentcore.asking import TIME_LIMIT, PingHandler
from dragoman.agentcore.cards import security_of
from dragoman.agentcore.hooks import Hook
from dragoman.agentcore.identity import Resolver, Verifier, by_session, by_user
from dragoman.card import CardSigner
from dragoman.errors import ConfigurationError
from dragoman.model import AgentCard
from dragoman.ports.store import TaskStore
from dragoman.push import PushSettings
from dragoman.runtime import Limits
from dragoman.server.app import Interceptor
from dragoman.server.dialects import VERSIONS, V03ServerSettings

LIMITS = Limits(shutdown_grace=10.0, interrupt_wait=2.0)


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a hosted agent. Times are in seconds.

    The card:

    * ``public_url``: the address that clients use; default ``AGENTCORE_RUNTIME_URL``, else what ``card`` says, else the
      address of the server's socket (Spec: AC-S-30);
    * ``card``: a card of the author's, instead of the one that is made of the agent; it is not changed (Spec: AC-S-31);
    * ``auth``: what the card says of the front: ``"sigv4"``, ``"bearer"``, or the OpenID Connect discovery URL of a JWT
      authorizer; default nothing (Spec: AC-S-35);
    * ``card_signer``: as for :class:`~dragoman.App`; what the profile shows is what is signed;
    * ``old_card_path``: serve the card at ``/.well-known/agent.json``, too (Spec: AC-S-37); ``card_max_age``: 300.

    Calls:

    * ``path``: the mount path that the runtime was configured with, default ``/`` (Spec: AC-S-03);
    * ``identify``: from what came with a call to the caller that its tasks belong to, default
      :func:`~dragoman.agentcore.by_session` (Spec: AC-S-46);
    * ``verify``: from a forwarded bearer token to its claims, raising for a bad one; ``front_verifies``: the runtime
      has a JWT authorizer, so claims of a forwarded token are believed; default neither (Spec: AC-S-47);
    * ``versions``, ``v03``: as for :class:`~dragoman.App`;
    * ``assume_extensions``: URIs taken as named by a caller whose ``A2A-Extensions`` did not arrive (Spec: AC-S-24);
    * ``context_from_session``: a new conversation has the session's id (Spec: AC-S-45); ``known_contexts_only``: as for
      :class:`~dragoman.App`;
    * ``max_body_bytes``: 100 MB (Spec: AC-S-18);
    * ``interceptors``: wrap the operations, below those of the profile.

    Streams:

    * ``heartbeat``: 15 (Spec: AC-S-51); ``stall_timeout``: 60;
    * ``max_event_bytes``: 10 MB (Spec: AC-S-53);
    * ``stream_seconds``: age at which a stream is closed so that clients join it again, 55 min (Spec: AC-S-54).

    Work:

    * ``store``: as for :class:`~dragoman.App`; ``limits``: default as there, but 2 s for interrupted handlers;
    * ``push``: as for :class:`~dragoman.App`; while something is to be delivered, the process is busy (Spec: AC-S-55);
    * ``own_thread``: the agent's code has a loop of its own, so that it cannot delay pings (Spec: AC-S-64);
    * ``on_start``: functions or coroutine functions to be done before the agent is ready, within ``start_limit``, 110,
      else the process ends with status 1 (Spec: AC-S-70, AC-S-71);
    * ``on_restore``: the same, after the process was restored from a snapshot (Spec: AC-S-73).

    The ping:

    * ``ping_handler``: says what a ping is answered with, within ``ping_limit``, 0.9 (Spec: AC-S-65);
    * ``turn_age``: age at which a turn of the agent does not count as busy any more; None: never (Spec: AC-S-67);
    * ``linger``: how long a task that waits for its caller keeps the microVM, 0 (Spec: AC-S-68);
    * ``restamp``: renew the stamp after a restore, True.

    For tests: ``environment``, ``wall``, ``monotonic``. Raises ConfigurationError for what cannot be.
    """

    public_url: str | None = None
    card: AgentCard | None = None
    auth: str | None = None
    card_signer: CardSigner | Sequence[CardSigner] | None = None
    old_card_path: bool = False
    card_max_age: int = 300
    path: str = "/"
    identify: Resolver = by_session
    verify: Verifier | None = None
    front_verifies: bool = False
    versions: Sequence[str] = VERSIONS
    v03: V03ServerSettings | None = None
    assume_extensions: Sequence[str] = ()
    context_from_session: bool = False
    known_contexts_only: bool = False
    max_body_bytes: int = 100_000_000
    interceptors: Sequence[Interceptor] = ()
    heartbeat: float = 15.0
    stall_timeout: float = 60.0
    max_event_bytes: int = 10_000_000
    stream_seconds: float = 3_300.0
    store: TaskStore | str | None = None
    limits: Limits = LIMITS
    push: bool | PushSettings | None = None
    own_thread: bool = True
    on_start: Sequence[Hook] = ()
    on_restore: Sequence[Hook] = ()
    start_limit: float = 110.0
    ping_handler: PingHandler | None = None
    ping_limit: float = TIME_LIMIT
    turn_age: float | None = None
    linger: float = 0.0
    restamp: bool = True
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ConfigurationError("path must begin with a slash")
        if self.auth is not None:
            security_of(self.auth)
        if self.identify is by_user and self.verify is None and not self.front_verifies:
            raise ConfigurationError("by_user needs verified tokens: set verify, or front_verifies=True")
        for name in ("max_event_bytes", "stream_seconds", "start_limit", "ping_limit"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(f"{name} must be more than 0")
