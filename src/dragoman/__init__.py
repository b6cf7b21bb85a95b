"""dragoman: the Agent2Agent (A2A) protocol for Python.

What users need is here; types of the protocol are in :mod:`dragoman.model`, errors in :mod:`dragoman.errors`.
"""

from dragoman.bindings.websocket import WebSocketBinding
from dragoman.card import CardSigner, SignaturePolicy, SignatureReport, TrustStore, verify_card
from dragoman.client import CardCache, Client, Conversation, Poll, Reconnect, Result, V03Settings, connect, fetch_card
from dragoman.errors import A2AError, ClientError, DragomanError
from dragoman.model import (
    AgentCard,
    AgentSkill,
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.ports.operations import Caller
from dragoman.ports.scoping import EVERYBODY, OWN, Reach
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.proxy import ProxyApp, proxy_app
from dragoman.runtime import Limits
from dragoman.server import Agent, AgentGroup, Answer, App, Authorization, Context, Fail, Reject, Reply, app
from dragoman.stores import MemoryStore, open_store

__version__ = "0.1.0"

__all__ = [
    "EVERYBODY",
    "OWN",
    "RESUMABLE_STREAMS",
    "A2AError",
    "Agent",
    "AgentCard",
    "AgentGroup",
    "AgentSkill",
    "Answer",
    "App",
    "Artifact",
    "Authorization",
    "Caller",
    "CardCache",
    "CardSigner",
    "Client",
    "ClientError",
    "Context",
    "Conversation",
    "DragomanError",
    "Fail",
    "Limits",
    "MemoryStore",
    "Message",
    "Part",
    "Poll",
    "ProxyApp",
    "Reach",
    "Reconnect",
    "Reject",
    "Reply",
    "Result",
    "Role",
    "SignaturePolicy",
    "SignatureReport",
    "Task",
    "TaskArtifactUpdateEvent",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdateEvent",
    "TrustStore",
    "V03Settings",
    "WebSocketBinding",
    "app",
    "connect",
    "fetch_card",
    "open_store",
    "proxy_app",
    "verify_card",
]
