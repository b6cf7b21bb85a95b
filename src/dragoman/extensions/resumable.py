"""Resumable streams: the declaration. What it means is in the runtime and the bindings, which number events anyway."""

from __future__ import annotations

from dragoman.extensions.calling import ClientExtension
from dragoman.extensions.serving import ServerExtension
from dragoman.protocol.extensions import RESUMABLE_STREAMS


class ResumableStreams(ServerExtension, ClientExtension):
    """Streams that go on where they broke, without gap or double. See
    :data:`~dragoman.protocol.extensions.RESUMABLE_STREAMS`, which may be given by its URI as well.

    The client of this package asks for it by itself wherever a card declares it.
    """

    uri = RESUMABLE_STREAMS
    description = "Streams can be resumed without gap or double."
