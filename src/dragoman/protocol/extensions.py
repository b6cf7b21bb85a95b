"""URIs of the extensions that this package brings. They are names; nothing has to be found there (Spec: EXT-18)."""

RESUMABLE_STREAMS = "https://a2a-dragoman.org/extensions/resumable-streams/v1"
"""Stream events carry their number as SSE ``id``; SubscribeToTask with ``Last-Event-ID: n`` goes on with n + 1.

Active when the card declares it and the client asks for it. A subscriber that sends no ``Last-Event-ID``, or one that
is not known any more, gets the snapshot of the specification (SUB-01).
"""

IDEMPOTENT_SENDS = "https://a2a-dragoman.org/extensions/idempotent-sends/v1"
"""A message that was sent before, with the same ``messageId`` by the same caller, begins nothing anew: it is answered
with the task, or the direct message, of the first. The same id with another content is an InvalidParamsError.

Active when the card declares it and the client asks for it.
"""

TRACE_CONTEXT = "https://a2a-dragoman.org/extensions/trace-context/v1"
"""The service parameters ``traceparent`` and ``tracestate`` are those of W3C Trace Context, and go on with the calls
that an agent makes for its task.

Active when the card declares it and the client asks for it.
"""


def owns_key(uri: str, key: str) -> bool:
    """Whether a key of metadata belongs to an extension: it is the URI, or begins with it.

    A letter or a digit that goes on makes it another URI, as ``…/v10`` is to ``…/v1``. Spec: EXT-10, AMB-26.
    """
    if not key.startswith(uri):
        return False
    rest = key[len(uri) :]
    return not rest or not uri[-1:].isalnum() or not rest[0].isalnum()
