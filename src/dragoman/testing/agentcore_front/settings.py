"""What can be set about a front: the runtime that it stands for, its limits, and the lives of its sessions.

Spec: AC-F-03, AC-F-04, AC-F-11, AC-F-12, AC-F-15; agentcore 11.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.testing.agentcore_front.refusals import ErrorId

ARN = "arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/rehearsal-Ab12Cd34Ef"
"""The runtime that a front stands for, unless it is told another. Nothing of that name exists."""

BusyRule = Literal["measured", "documented"]
SHORTEST_ID, LONGEST_ID = 33, 256


class FrontLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the service. Times are seconds, and are multiplied by the front's time scale; None: no limit.

    * ``body_bytes``: of a request, default 100 MB;
    * ``event_bytes``: of one event of a stream, default 10 MB;
    * ``stream_s``, ``call_s``: how long a stream and any other call may take, default 60 and 15 minutes;
    * ``init_s``: how long the first call of a session may stay silent, and its process not ready, default 120;
    * ``rate``: calls in one second, default 200.
    """

    body_bytes: int = 100_000_000
    event_bytes: int = 10_000_000
    stream_s: float = 3_600.0
    call_s: float = 900.0
    init_s: float = 120.0
    rate: float | None = 200.0


class Lifecycle(msgspec.Struct, frozen=True, kw_only=True):
    """The lives of sessions. Times are seconds, and are multiplied by the front's time scale.

    * ``create_s``: how long the first call of a session takes longer, default 0;
    * ``idle_s``, ``max_lifetime_s``: default 900 and 28,800;
    * ``stop_s``: how long a process may take to end before it is killed, default 15;
    * ``ping_s``: time between two pings, default 2; ``failing_pings`` in a row fail a session, default 3;
    * ``busy_rule``: whether ``HealthyBusy`` without an integer stamp keeps a session: not, as was measured, or yes, as
      is documented.
    """

    create_s: float = 0.0
    idle_s: float = 900.0
    max_lifetime_s: float = 28_800.0
    stop_s: float = 15.0
    ping_s: float = 2.0
    failing_pings: int = 3
    busy_rule: BusyRule = "measured"


class FrontSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be set about a front.

    * ``arn``, ``qualifiers``: the runtime and its endpoints;
    * ``allow_list``: request headers that reach the container beside the usual ones. Default: none, so ``A2A-Version``
      is dropped;
    * ``path``: where the container serves JSON-RPC, default ``/``;
    * ``may_read_card``: False: the caller may invoke, but lacks ``GetAgentCard``;
    * ``may_name_users``: False: the caller lacks ``InvokeAgentRuntimeForUser``;
    * ``error_id``: the ``id`` in error bodies of the front;
    * ``time_scale``: what all times of ``limits`` and ``lifecycle`` are multiplied by, default 1.
    """

    arn: str = ARN
    qualifiers: tuple[str, ...] = ("DEFAULT",)
    allow_list: tuple[str, ...] = ()
    path: str = "/"
    may_read_card: bool = True
    may_name_users: bool = True
    error_id: ErrorId = "echo"
    limits: FrontLimits = FrontLimits()
    lifecycle: Lifecycle = Lifecycle()
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        words = self.arn.split(":")
        if len(words) != 6 or words[0] != "arn" or not words[5].startswith("runtime/"):
            raise ConfigurationError(f"{self.arn!r} is not the ARN of a runtime")
        if self.time_scale <= 0:
            raise ConfigurationError("the time scale must be above zero")

    @property
    def region(self) -> str:
        """The region of the runtime."""
        return self.arn.split(":")[3]

    @property
    def account(self) -> str:
        """The account that the runtime belongs to."""
        return self.arn.split(":")[4]

    @property
    def runtime_id(self) -> str:
        """The runtime's id without the rest of its ARN."""
        return self.arn.rpartition("/")[2]
