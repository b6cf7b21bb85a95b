"""Field: what the proto says about one field."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.model.wire import WireEnum, WireMessage

Kind = Literal["string", "bool", "int32", "bytes", "enum", "message", "timestamp", "struct", "value"]
Shape = Literal["single", "list", "map"]


class Field(msgspec.Struct, frozen=True, eq=False, kw_only=True, omit_defaults=True):
    """One field of a message, for readers and writers that work from facts.

    * ``name``: attribute and proto name; ``json_name``: name on the wire; ``number``: in protobuf;
    * ``kind``: what one value is (of a map: its values; keys are strings);
    * ``shape``: one value, a list of them, or a map to them;
    * ``message``, ``enum``: the type when ``kind`` is ``message`` or ``enum``, else None;
    * ``required``: annotated REQUIRED (Spec: DATA-12);
    * ``presence``: absent and default differ (Spec: DATA-15); true for single messages, too;
    * ``oneof``: name of the oneof it belongs to, or ``""`` (Spec: DATA-17). The flows of OAuthFlows have none:
      cards with several of them are read without failing (Spec: AMB-54).
    """

    name: str
    json_name: str
    number: int
    kind: Kind
    shape: Shape = "single"
    message: type[WireMessage] | None = None
    enum: type[WireEnum] | None = None
    required: bool = False
    presence: bool = False
    oneof: str = ""
