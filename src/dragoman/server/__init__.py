"""Serving agents: the agent API and the application that serves it."""

from dragoman.bindings.grpc.settings import GrpcServerSettings, ServerTls
from dragoman.server.agent import Agent
from dragoman.server.app import App, Application, app
from dragoman.server.authorization import Answer, Authorization
from dragoman.server.context import ArtifactStream, Context, Fail, Reject, Reply
from dragoman.server.dialects import V03ServerSettings
from dragoman.server.group import AgentGroup
from dragoman.server.limiting import RateLimit

__all__ = [
    "Agent",
    "AgentGroup",
    "Answer",
    "App",
    "Application",
    "ArtifactStream",
    "Authorization",
    "Context",
    "Fail",
    "GrpcServerSettings",
    "RateLimit",
    "Reject",
    "Reply",
    "ServerTls",
    "V03ServerSettings",
    "app",
]
