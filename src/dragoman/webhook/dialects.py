"""The receiver's one door to protocol 0.3. Nothing of it is loaded before a notification of that version comes.

Spec: 6 of the register of version 0.3.
"""

from __future__ import annotations

from typing import Any

from dragoman.model import StreamResponse

V03 = "0.3"


def read_older(value: Any) -> StreamResponse:
    """What a notification of 0.3 says: a whole task, or an event of one, bare, with or without ``kind``.

    Raises InvalidParamsError that names the members that are wrong.
    """
    from dragoman.compat.v03 import types
    from dragoman.compat.v03.reading import read
    from dragoman.compat.v03.upward import up_event

    return up_event(read(types.StreamResponse, value, answer=True))
