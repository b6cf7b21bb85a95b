"""Serving agents: the agent API and the application that serves it."""

from dragoman.bindings.grpc.settings import GrpcServerSettings, ServerTls
from dragoman.server.agent import Agent
from dragoman.server.app import App, Application, app
from dragoman.server.context import Answer, ArtifactStream, Context, Fail, Reject, Reply
from dragoman.server.dialects import V03ServerSettings

__all__ = [
    "Agent",
    "Answer",
    "App",
    "Application",
    "ArtifactStream",
    "Context",
    "Fail",
    "GrpcServerSettings",
    "Reject",
    "Reply",
    "ServerTls",
    "V03ServerSettings",
    "app",
]
