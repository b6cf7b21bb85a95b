"""Extensions of the protocol: hooks for code on both sides, and three that are ready to use, off by default."""

from dragoman.extensions.calling import ClientExtension, asked_uris, over_client
from dragoman.extensions.hooks import Hooks
from dragoman.extensions.idempotent import IdempotentSends
from dragoman.extensions.metadata import data_of, with_metadata
from dragoman.extensions.resumable import ResumableStreams
from dragoman.extensions.serving import Method, ServerExtension, ServerExtensions, method_operation
from dragoman.extensions.trace import Trace, TraceContext, current_trace, trace_headers, trace_of, tracing
from dragoman.protocol.extensions import IDEMPOTENT_SENDS, RESUMABLE_STREAMS, TRACE_CONTEXT

__all__ = [
    "IDEMPOTENT_SENDS",
    "RESUMABLE_STREAMS",
    "TRACE_CONTEXT",
    "ClientExtension",
    "Hooks",
    "IdempotentSends",
    "Method",
    "ResumableStreams",
    "ServerExtension",
    "ServerExtensions",
    "Trace",
    "TraceContext",
    "asked_uris",
    "current_trace",
    "data_of",
    "method_operation",
    "over_client",
    "trace_headers",
    "trace_of",
    "tracing",
    "with_metadata",
]
