"""A stand-in for the front of Amazon Bedrock AgentCore Runtime, on this machine, without an account.

It plays the front towards clients (addresses, signatures or tokens, sessions, real statuses, faults by order) and the
platform towards containers (a process for each session, pings, reclaim of idle sessions, SIGTERM), and keeps what a
container does against its contract. ``dragoman agentcore dev`` is its command::

    async with Front(PerSession.of_agent("tides:agent"), auth=SigV4()) as front:
        front.fail_next(Fault.BUSY, 3)
        ...
        assert front.violations == []

Spec: agentcore 9 (AC-F-01 to AC-F-15).
"""

from __future__ import annotations

from dragoman.testing.agentcore_front.authorization_server import AuthorizationServer
from dragoman.testing.agentcore_front.faults import Delay, Truncate
from dragoman.testing.agentcore_front.front import Front
from dragoman.testing.agentcore_front.incoming import Open
from dragoman.testing.agentcore_front.jwt import Jwt
from dragoman.testing.agentcore_front.pings import Violation
from dragoman.testing.agentcore_front.recording import Forwarded, Recorded
from dragoman.testing.agentcore_front.refusals import Fault
from dragoman.testing.agentcore_front.sessions import Ending, Session
from dragoman.testing.agentcore_front.settings import FrontLimits, FrontSettings, Lifecycle
from dragoman.testing.agentcore_front.sigv4 import REHEARSAL_KEY, AwsKey, SigV4
from dragoman.testing.agentcore_front.upstreams import PerSession, Shared

__all__ = [
    "REHEARSAL_KEY",
    "AuthorizationServer",
    "AwsKey",
    "Delay",
    "Ending",
    "Fault",
    "Forwarded",
    "Front",
    "FrontLimits",
    "FrontSettings",
    "Jwt",
    "Lifecycle",
    "Open",
    "PerSession",
    "Recorded",
    "Session",
    "Shared",
    "SigV4",
    "Truncate",
    "Violation",
]
