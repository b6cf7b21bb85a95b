"""How the parts of a message or an artifact look as text. None is left out.

Spec: A2ACLI_SEND_004, P-14.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET

from dragoman.cli.clean import json_text, one_line, size
from dragoman.model import Part


def describe_file(part: Part) -> str:
    """A part that is no text and no data: name, media type, and size or address."""
    if part.url is not None:
        facts = [part.media_type, part.url]
    elif part.raw is not None:
        facts = [part.media_type, size(len(part.raw))]
    else:
        facts = [part.media_type, "empty part"]
    return f"{part.filename or 'unnamed'} ({', '.join(fact for fact in facts if fact)})"


def is_file(part: Part) -> bool:
    """Whether a part is shown by name and size and not by its content."""
    return part.text is None and part.data is UNSET


def data_text(part: Part) -> str:
    """The value of a data part as JSON."""
    return json_text(msgspec.json.encode(part.data), indent=True)


def kind(part: Part) -> str:
    """What a part is made of."""
    if part.text is not None:
        return "text"
    if part.raw is not None:
        return "raw"
    return "url" if part.url is not None else "data" if part.data is not UNSET else "empty"


def describe_part(index: int, part: Part) -> str:
    """A part in one line, for ``--verbose``."""
    facts = [kind(part), part.media_type, part.filename]
    if part.metadata:
        facts.append(msgspec.json.encode(part.metadata).decode())
    return f"{index} {' '.join(fact for fact in facts if fact)}"


def inline(parts: Iterable[Part]) -> str:
    """All parts one below the other, for a block."""
    pieces: list[str] = []
    was_text = False
    for part in parts:
        if part.text is not None and was_text:
            pieces[-1] += part.text
        elif part.text is not None:
            pieces.append(part.text)
        else:
            pieces.append(data_text(part) if part.data is not UNSET else f"[file] {one_line(describe_file(part))}")
        was_text = part.text is not None
    return "\n".join(pieces)
