"""Amazon Bedrock AgentCore: agents hosted there, and agents called there.

``agentcore.app(agent)`` is an agent as AgentCore Runtime expects it, and ``dragoman run module:agent --agentcore`` runs
it so. ``async with agentcore.connect(arn) as client`` calls one.
"""

from dragoman.agentcore.app import AgentCoreApp, app
from dragoman.agentcore.connection import RuntimeConnection, connect
from dragoman.agentcore.current import current, hold, of
from dragoman.agentcore.custom_headers import custom_headers, in_session
from dragoman.agentcore.errors import (
    AccessDenied,
    AgentCoreError,
    AgentFailed,
    AuthenticationRequired,
    CredentialsNotFoundError,
    RequestRejected,
    RuntimeNotFound,
    ServiceError,
    SessionBusy,
    SessionConflict,
    SharedSessionError,
    Throttled,
)
from dragoman.agentcore.headers import AgentCoreContext
from dragoman.agentcore.health import Health
from dragoman.agentcore.holding import Hold
from dragoman.agentcore.hosting import run
from dragoman.agentcore.identity import by_session, by_user
from dragoman.agentcore.keys import AwsCredentials
from dragoman.agentcore.pieces import publish, split
from dragoman.agentcore.ping import Report, Status
from dragoman.agentcore.profile import Profile
from dragoman.agentcore.retrying import Retry
from dragoman.agentcore.runtime_client import RuntimeClient
from dragoman.agentcore.sessions import Derivation, SessionState, new_session_id
from dragoman.agentcore.timing import Timing
from dragoman.agentcore.tracing import traced

__all__ = [
    "AccessDenied",
    "AgentCoreApp",
    "AgentCoreContext",
    "AgentCoreError",
    "AgentFailed",
    "AuthenticationRequired",
    "AwsCredentials",
    "CredentialsNotFoundError",
    "Derivation",
    "Health",
    "Hold",
    "Profile",
    "Report",
    "RequestRejected",
    "Retry",
    "RuntimeClient",
    "RuntimeConnection",
    "RuntimeNotFound",
    "ServiceError",
    "SessionBusy",
    "SessionConflict",
    "SessionState",
    "SharedSessionError",
    "Status",
    "Throttled",
    "Timing",
    "app",
    "by_session",
    "by_user",
    "connect",
    "current",
    "custom_headers",
    "hold",
    "in_session",
    "new_session_id",
    "of",
    "publish",
    "run",
    "split",
    "traced",
]
