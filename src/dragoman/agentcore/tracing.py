"""Traces: what came with a call, handed to OpenTelemetry where that is installed. Its one door.

Spec: AC-S-48.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from dragoman.agentcore.current import current
from dragoman.agentcore.headers import AgentCoreContext

SESSION_ATTRIBUTE = "session.id"


@contextmanager
def traced(name: str, call: AgentCoreContext | None = None) -> Iterator[Any]:
    """A span below the one that the caller's trace headers name, with the session's id as ``session.id``.

    ``call`` is by default that of the running handler. The headers are read by the propagators that OpenTelemetry is
    configured with. Gives the span; without opentelemetry-api, None, and nothing is done.
    """
    if find_spec("opentelemetry") is None:
        yield None
        return
    from opentelemetry import propagate, trace

    call = call or current()
    parent = propagate.extract(dict(call.trace))
    attributes = {SESSION_ATTRIBUTE: call.session_id} if call.session_id else {}
    with trace.get_tracer("dragoman.agentcore").start_as_current_span(name, parent, attributes=attributes) as span:
        yield span
