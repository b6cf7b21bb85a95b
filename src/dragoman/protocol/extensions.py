"""URIs of the extensions that this package brings. They are names; nothing has to be found there (Spec: EXT-18)."""

RESUMABLE_STREAMS = "https://a2a-dragoman.org/extensions/resumable-streams/v1"
"""Stream events carry their number as SSE ``id``; SubscribeToTask with ``Last-Event-ID: n`` goes on with n + 1.

Active when the card declares it and the client asks for it. A subscriber that sends no ``Last-Event-ID``, or one that
is not known any more, gets the snapshot of the specification (SUB-01).
"""
