"""The content of a file where 0.3 has a field of bytes: most peers put base64 *text* there, some the content itself.

Structs hold the content; these two functions stand at the edges, gRPC and the JSON of the proto.

Spec: v0.3 §4.7, V03-P09.
"""

from __future__ import annotations

import base64
import binascii


def write_content(content: bytes) -> bytes:
    """What goes on the wire for this content: its base64 text, as most peers have it."""
    return base64.b64encode(content)


def read_content(data: bytes) -> bytes:
    """The content that came as ``data``: decoded when it is base64 text, else ``data`` itself.

    Text is what is ASCII, a multiple of four long, decodes as standard base64, and encodes to the very same again.
    Content that looks like that by chance is misread; a peer that is known to send plain content is read without this.
    """
    if len(data) % 4 or not data.isascii():
        return data
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        return data
    return content if base64.b64encode(content) == data else data
