"""Write ProtoJSON.

Spec: §5.5 to §5.7, DATA-03 to DATA-05, DATA-07, DATA-10 to DATA-12, DATA-18, AMB-41, AMB-46 to AMB-48.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.model.open_message import OpenMessage
from dragoman.model.timestamp import Timestamp


class EncodingError(DragomanError, ValueError):
    """A message holds something that JSON cannot carry; the message says what kind of thing, not its content."""


def encode_json(message: msgspec.Struct) -> bytes:
    """The message as ProtoJSON text in UTF-8.

    REQUIRED fields are always written, others when they differ from their default. Integers stay integers,
    ``data: None`` is written as null, timestamps are in UTC with milliseconds, text is not escaped beyond need.

    Raises EncodingError when the message holds what JSON cannot carry: text with a lone surrogate, a value of a
    foreign type in ``data`` or ``metadata``, nesting beyond the interpreter's limit. A float that is not finite is
    written as null.

    Spec: DATA-03 to DATA-05, DATA-07, DATA-12, AMB-47, AMB-48.
    """
    try:
        return _ENCODER.encode(message.data() if message.__class__ is OpenMessage else message)
    except UnicodeEncodeError:
        raise EncodingError("a text holds a lone surrogate, which is no Unicode character") from None
    except RecursionError:
        raise EncodingError("the message is nested too deeply") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodingError("a value has no form in JSON") from error


def _encode_foreign(value: Any) -> str:
    if isinstance(value, Timestamp):
        return value.rfc3339()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_foreign)
