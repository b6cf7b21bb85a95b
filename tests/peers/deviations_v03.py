"""Where peers that speak protocol 0.3 do otherwise, and servers of frameworks: see ``deviations.py``."""

from __future__ import annotations

import base64

from tests.peers.calling import Json
from tests.peers.deviation import (
    BOTH,
    FASTA2A_03_SERVER,
    JS_03_CLIENT,
    JS_03_SERVER,
    SDK_03_CLIENT,
    SDK_03_SERVER,
    Deviation,
)

REST, RPC, GRPC = ("HTTP+JSON",), ("JSONRPC",), ("GRPC",)
PROTO = ("HTTP+JSON", "GRPC")
"""The bindings where the messages are those of the protobuf file."""

_ROUNDED = {"data": {"big": 9007199254740992}}
_NO_TIME = {"time": False}

A2A_SDK_0_3: tuple[Deviation, ...] = (
    Deviation(
        "task",
        (SDK_03_CLIENT, SDK_03_SERVER),
        _NO_TIME,
        "Over HTTP+JSON and gRPC, a2a-sdk 0.3 leaves out the status's timestamp when it converts between its own "
        "objects and those of protobuf.",
        bindings=PROTO,
    ),
    Deviation(
        "whole numbers beyond 2^53",
        (SDK_03_CLIENT, SDK_03_SERVER),
        _ROUNDED,
        "Over HTTP+JSON and gRPC, a2a-sdk 0.3 holds data as protobuf's Struct, whose numbers are doubles.",
        bindings=PROTO,
    ),
    Deviation(
        "push notifications, not offered",
        (SDK_03_CLIENT,),
        {"list": "NotThere", "delete": "NotThere"},
        "a2a-sdk 0.3's client can set and get a configuration only.",
    ),
    Deviation(
        "unknown task",
        (SDK_03_CLIENT,),
        {"subscribe": "HTTP 400", "stream": "HTTP 404"},
        "Of an error that answers a stream over HTTP+JSON, a2a-sdk 0.3's client keeps the status at most; that of a "
        "subscription it does not look at.",
        bindings=REST,
    ),
    Deviation(
        "message to a finished task",
        (SDK_03_CLIENT,),
        {"stream": "HTTP 501"},
        "Of an error that answers a stream over HTTP+JSON, a2a-sdk 0.3's client keeps the status at most.",
        bindings=REST,
    ),
    Deviation(
        "message to a finished task",
        (SDK_03_SERVER,),
        {"send": "InvalidParamsError", "stream": "InvalidParamsError"},
        "To a message to a finished task a2a-sdk 0.3's server says that its parameters are invalid (v0.3 §2.5).",
        bindings=("JSONRPC", "GRPC"),
    ),
    Deviation(
        "message to a finished task",
        (SDK_03_SERVER,),
        {"send": "InvalidParamsError", "stream": "ConnectionLostError"},
        "To a message to a finished task a2a-sdk 0.3's server says that its parameters are invalid, and over HTTP+JSON "
        "it breaks a stream's connection instead of sending an error (v0.3 §3.4).",
        bindings=REST,
    ),
    Deviation(
        "cancel, seen by the stream",
        (SDK_03_SERVER,),
        {},
        "a2a-sdk 0.3's server does not tell the stream of the message that its task was canceled, and never ends it.",
        hangs=True,
    ),
    Deviation(
        "unknown task",
        (SDK_03_SERVER,),
        {"stream": "ConnectionLostError"},
        "a2a-sdk 0.3's server breaks a stream's connection over HTTP+JSON instead of sending an error (v0.3 §3.4).",
        bindings=REST,
    ),
    Deviation(
        "invalid parameters",
        (SDK_03_SERVER,),
        {"no_parts": "InternalError", "history_length": "none"},
        "a2a-sdk 0.3's server takes a message without parts, and a negative historyLength.",
        bindings=BOTH,
    ),
    Deviation(
        "invalid parameters",
        (SDK_03_SERVER,),
        {"no_parts": "RemoteError", "history_length": "none"},
        "a2a-sdk 0.3's server takes a message without parts, and a negative historyLength.",
        bindings=GRPC,
    ),
    Deviation(
        "push configurations",
        (SDK_03_SERVER,),
        {"refused": "UnsupportedOperationError"},
        "Over HTTP+JSON and gRPC, a2a-sdk 0.3's server has no list of configurations, and deletes none.",
        bindings=PROTO,
    ),
    Deviation(
        "extended card",
        (SDK_03_SERVER,),
        {"name": "Words"},
        "Over gRPC, a2a-sdk 0.3's server answers with its public card.",
        bindings=GRPC,
    ),
)

_BYTES = bytes(range(256))
_TWICE = base64.b64encode(base64.b64encode(_BYTES)).decode()
_HABIT = (
    "Over HTTP+JSON and gRPC, a2a-js 0.3 has the content of files as it is, where the other SDKs have its base64 text; "
    "dragoman does like those unless it is told raw_bytes (v0.3 §4.7)."
)
_NAMELESS = "Over HTTP+JSON and gRPC, a2a-js 0.3 knows no names of files."
_LINK = {"url": "https://example.com/a%20b.png?x=1", "mediaType": "image/png"}
_MEDIA = "application/octet-stream"
_ZEROS = {
    "text": 'naïve ☃ 😀 \u2028\u0085 \\ " \t é',
    "nothing": 0,
    "list": [0, -5, 2.5, True, False, 0, "", {}, []],
    "deep": {"a": {"b": {"c": [1, [2, [3]]]}}},
    "whole": 9007199254740991,
}
_WRAPPED: list[Json] = [{"data": {"value": value}} for value in (None, False, [], 0)]
_NO_METADATA = "Over HTTP+JSON and gRPC, a2a-js 0.3 knows no metadata of a part, and so loses that data was wrapped."

_NULL_SENT = "Over gRPC, a2a-js 0.3's client cannot send a null within data or metadata."
_NULL_READ = "Over gRPC, a2a-js 0.3's server makes 0 of a null within data or metadata."
_ERRORS = "Over gRPC, a2a-js 0.3's client tells few errors by their statuses, and no others."
_CHECKS_LITTLE = "a2a-js 0.3's server takes a message without parts or with another context than its task's"
_REFUSAL = "To a message to a finished task a2a-js 0.3's server says that the request is invalid (v0.3 §2.5)"

A2A_JS_0_3: tuple[Deviation, ...] = (
    Deviation(
        "whole numbers beyond 2^53",
        (JS_03_CLIENT, JS_03_SERVER),
        _ROUNDED,
        "JavaScript's numbers are doubles: what is beyond 2^53 is rounded on its side.",
    ),
    Deviation(
        "stream",
        (JS_03_CLIENT,),
        {"append": [False] * 5},
        "Over HTTP+JSON and gRPC, a2a-js 0.3's client loses whether a piece is to be appended.",
        bindings=PROTO,
    ),
    Deviation(
        "files",
        (JS_03_CLIENT,),
        {"parts": [{"raw": _TWICE, "mediaType": _MEDIA}, _LINK]},
        f"{_HABIT} It knows no names of files there.",
        bindings=PROTO,
    ),
    Deviation(
        "files",
        (JS_03_SERVER,),
        {"parts": [{"raw": base64.b64encode(_BYTES).decode(), "mediaType": _MEDIA}, _LINK]},
        _NAMELESS,
        bindings=PROTO,
    ),
    Deviation("file, as the agent has it", (JS_03_SERVER,), {"size": "344"}, _HABIT, bindings=PROTO),
    Deviation("data", (JS_03_CLIENT,), {"refused": "Error"}, _NULL_SENT, bindings=GRPC),
    Deviation("metadata", (JS_03_CLIENT,), {"refused": "Error"}, _NULL_SENT, bindings=GRPC),
    Deviation("data that is null, false or empty", (JS_03_CLIENT,), {"refused": "Error"}, _NULL_SENT, bindings=GRPC),
    Deviation("data", (JS_03_SERVER,), {"parts": [{"data": _ZEROS}]}, _NULL_READ, bindings=GRPC),
    Deviation("metadata", (JS_03_SERVER,), {"said": {"k": {"n": 1, "none": 0, "é": ["x"]}}}, _NULL_READ, bindings=GRPC),
    Deviation(
        "data that is null, false or empty",
        (JS_03_CLIENT, JS_03_SERVER),
        {"parts": _WRAPPED},
        _NO_METADATA,
        bindings=REST,
    ),
    Deviation(
        "data that is null, false or empty",
        (JS_03_SERVER,),
        {"parts": [{"data": {"value": 0}}, *_WRAPPED[1:]]},
        f"{_NO_METADATA} {_NULL_READ}",
        bindings=GRPC,
    ),
    Deviation(
        "invalid parameters",
        (JS_03_CLIENT,),
        {"no_parts": "Error", "other_context": "Error", "history_length": "Error"},
        _ERRORS,
        bindings=GRPC,
    ),
    Deviation("push notifications, not offered", (JS_03_CLIENT,), {"send": "Error"}, _ERRORS, bindings=GRPC),
    Deviation(
        "extended card, not offered", (JS_03_CLIENT,), {"error": "UnsupportedOperationError"}, _ERRORS, bindings=GRPC
    ),
    Deviation(
        "message to a finished task", (JS_03_CLIENT,), {"send": "Error", "stream": "Error"}, _ERRORS, bindings=GRPC
    ),
    Deviation(
        "message to a finished task",
        (JS_03_SERVER,),
        {"send": "InvalidRequestError", "stream": "InvalidRequestError"},
        f"{_REFUSAL}.",
        bindings=RPC,
    ),
    Deviation(
        "message to a finished task",
        (JS_03_SERVER,),
        {"send": "InvalidRequestError", "stream": "InternalError"},
        f"{_REFUSAL}, and over HTTP+JSON it makes an internal one of every error of a stream.",
        bindings=REST,
    ),
    Deviation(
        "message to a finished task",
        (JS_03_SERVER,),
        {"send": "InvalidParamsError", "stream": "InvalidParamsError"},
        f"{_REFUSAL}, for which gRPC has no status of its own.",
        bindings=GRPC,
    ),
    Deviation(
        "unknown task",
        (JS_03_SERVER,),
        {"subscribe": "InternalError", "stream": "InternalError"},
        "Over HTTP+JSON, a2a-js 0.3's server makes an internal error of every error of a stream.",
        bindings=REST,
    ),
    Deviation(
        "history, as much as asked for",
        (JS_03_SERVER,),
        {"zero": "all", "all": False},
        "Over JSON-RPC and HTTP+JSON, a2a-js 0.3's server gives no history unless it is asked for some (v0.3 §2.6).",
        bindings=BOTH,
    ),
    Deviation(
        "invalid parameters",
        (JS_03_SERVER,),
        {"no_parts": "none", "other_context": "none", "history_length": "none"},
        f"{_CHECKS_LITTLE}, and a negative historyLength.",
        bindings=("JSONRPC", "GRPC"),
    ),
    Deviation(
        "invalid parameters",
        (JS_03_SERVER,),
        {"no_parts": "none", "other_context": "none"},
        f"{_CHECKS_LITTLE}.",
        bindings=REST,
    ),
)

FRAMEWORKS: tuple[Deviation, ...] = (
    Deviation(
        "data and files",
        (FASTA2A_03_SERVER,),
        {"parts": [{"data": {"a": [1, None, "é"]}}, {"raw": "AAEC", "mediaType": "image/png"}]},
        "fasta2a 0.6 knows no names of files.",
    ),
)
