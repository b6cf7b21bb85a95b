"""Text of strangers, made harmless for terminals. Pure.

Whatever an agent sends is shown, but none of it can move the cursor, change colours, or look like a line of ours:
control characters and bidirectional overrides come out as escapes, and content is indented below its label.

Spec: A2ACLI_OUT_005; section 9.2 of the register of the command line.
"""

from __future__ import annotations

import msgspec

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
_BIDI = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_LINES = [0x2028, 0x2029]
_SURROGATES = range(0xD800, 0xE000)
_SHORT = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}


def _escape(code: int) -> str:
    return _SHORT.get(code) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


_IN_FIELDS = {code: _escape(code) for code in (*_CONTROLS, *_BIDI, *_LINES, *_SURROGATES)}
_IN_BLOCKS = {code: text for code, text in _IN_FIELDS.items() if code not in (0x09, 0x0A)}
_IN_JSON = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *_BIDI, *_LINES)}


def one_line(text: str) -> str:
    """Text for a field: on one line, nothing in it is acted upon."""
    return text.translate(_IN_FIELDS)


def block(text: str) -> str:
    """Text for a block: each line indented by two blanks, so that none can pass for a field."""
    lines = text.replace("\r\n", "\n").translate(_IN_BLOCKS).split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return "".join(f"  {line}\n" for line in lines)


def json_text(encoded: bytes, *, indent: bool) -> str:
    """JSON for standard output. What JSON leaves as it is and a terminal would act upon is escaped, losing nothing."""
    return msgspec.json.format(encoded, indent=2 if indent else -1).decode().translate(_IN_JSON)


def size(count: int) -> str:
    """A number of bytes."""
    return f"{count} byte" if count == 1 else f"{count} bytes"
