"""Serving agents: the agent API and the application that serves it."""

from dragoman.server.agent import Agent
from dragoman.server.app import App, app
from dragoman.server.context import Answer, ArtifactStream, Context, Fail, Reject, Reply

__all__ = ["Agent", "Answer", "App", "ArtifactStream", "Context", "Fail", "Reject", "Reply", "app"]
