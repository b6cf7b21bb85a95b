"""What a connection to an agent on AgentCore is set up with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.agentcore.gate import HOLD
from dragoman.agentcore.keys import KeySource
from dragoman.agentcore.retrying import Retry
from dragoman.agentcore.runtime_address import RuntimeAddress
from dragoman.agentcore.sessions import Derivation, SessionState
from dragoman.agentcore.timing import Timing
from dragoman.auth import Bearer
from dragoman.errors import ConfigurationError
from dragoman.http.guard import is_loopback_host, parse_target
from dragoman.model import AgentCard

MAX_USER_ID = 1024
CARD_TIMEOUT = 130.0
"""Seconds for the card: the start of the agent may be behind it. Spec: AC-C-63."""


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that are AgentCore's own. See :func:`~dragoman.agentcore.connect`."""

    address: RuntimeAddress
    credentials: KeySource | None = None
    profile: str | None = None
    bearer: Bearer | None = None
    anonymous: bool = False
    session_id: str | None = None
    state: SessionState | None = None
    derivation: Derivation | None = None
    identity: str = ""
    share_sessions: bool = False
    stop_on_close: bool = False
    user_id: str = ""
    card: bool | AgentCard | Mapping[str, Any] = True
    version: str = "1.0"
    trusted: Sequence[str] = ()
    own_address: bool = False
    retry: Retry = Retry()
    hold: float = HOLD
    unary_limit: float | None = None
    card_timeout: float = CARD_TIMEOUT
    max_request_bytes: int = 100_000_000
    timing: Timing = Timing()

    def __post_init__(self) -> None:
        if self.bearer is not None and (self.credentials is not None or self.profile is not None):
            raise ConfigurationError("either AWS credentials or bearer, not both: the agent takes one kind only")
        if self.anonymous and (self.bearer is not None or self.credentials is not None or self.profile is not None):
            raise ConfigurationError("anonymous goes without credentials and bearer")
        if self.anonymous and not is_loopback_host(parse_target(self.address.origin).host):
            raise ConfigurationError("anonymous is for a stand-in on this machine: the service takes no such calls")
        if self.user_id and self.bearer is not None:
            raise ConfigurationError("user_id goes with AWS credentials only: a bearer token says who the user is")
        if len(self.user_id) > MAX_USER_ID or not (self.user_id.isascii() and (self.user_id or "x").isprintable()):
            raise ConfigurationError(f"user_id has at most {MAX_USER_ID} printable ASCII characters")
        if self.state is not None and self.session_id is not None:
            raise ConfigurationError("state says which session is used: give it or session_id, not both")
