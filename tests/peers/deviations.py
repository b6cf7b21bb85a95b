"""Where a peer does otherwise, as data: which one, in which scenario, what is seen instead, and why it is not ours to
mend. A deviation that is gone fails its test, so that it is taken out of here.
"""

from __future__ import annotations

from tests.peers.deviation import BOTH, JS_CLIENT, JS_SERVER, SDK_CLIENT, SDK_SERVER, Deviation
from tests.peers.deviations_v03 import A2A_JS_0_3, A2A_SDK_0_3, FRAMEWORKS

_GENERAL = "A2AClientError"

A2A_SDK_1_3: tuple[Deviation, ...] = (
    Deviation(
        "whole numbers beyond 2^53",
        (SDK_CLIENT, SDK_SERVER),
        {"data": {"big": 9007199254740992}},
        "a2a-sdk holds data as protobuf's Value, whose numbers are doubles: what is beyond 2^53 is rounded on its "
        "side; dragoman keeps it (AMB-48).",
    ),
    Deviation(
        "invalid parameters",
        (SDK_CLIENT,),
        {
            "no_parts": _GENERAL,
            "no_role": _GENERAL,
            "other_context": _GENERAL,
            "page_size_0": _GENERAL,
            "page_size_101": _GENERAL,
            "page_token": _GENERAL,
            "history_length": _GENERAL,
        },
        "Over HTTP+JSON and gRPC, a2a-sdk's client tells errors only by the reason of an ErrorInfo, and looks for "
        "INVALID_PARAMS, which the specification does not have; INVALID_ARGUMENT with a BadRequest (§10.6, §11.6) "
        "becomes a general error.",
        bindings=("HTTP+JSON", "GRPC"),
    ),
    Deviation(
        "push notifications, not offered",
        (SDK_SERVER,),
        {"send": "none"},
        "a2a-sdk's server drops a webhook that comes with a message, instead of refusing what its card does not offer "
        "(§3.3.4, AMB-15).",
    ),
    Deviation(
        "other versions",
        (SDK_SERVER,),
        {"minor": "none"},
        "a2a-sdk's server compares the major version only; Major.Minor is what must be the same (§3.6, AMB-19).",
    ),
    Deviation(
        "other versions",
        (SDK_SERVER,),
        {"next": "none", "none": "none"},
        "Over gRPC, a2a-sdk's server does not look at the version (§3.6.2, AMB-98).",
        bindings=("GRPC",),
    ),
)

_JS_INVALID = "A2AError"

A2A_JS_1_3: tuple[Deviation, ...] = (
    Deviation(
        "data that is null, false or empty",
        (JS_CLIENT,),
        {"refused": "InvalidParamsError"},
        "a2a-js drops a data part's null when it reads JSON, so that a part without content is sent, which dragoman "
        "refuses; null is data (B001).",
        bindings=("JSONRPC",),
    ),
    Deviation(
        "data that is null, false or empty",
        (JS_CLIENT,),
        {"refused": _JS_INVALID},
        "a2a-js drops a data part's null when it reads JSON, so that a part without content is sent, which dragoman "
        "refuses; null is data (B001).",
        bindings=("HTTP+JSON", "GRPC"),
    ),
    Deviation(
        "data that is null, false or empty",
        (JS_SERVER,),
        {"parts": [{}, {"data": False}, {"data": []}, {"data": 0}]},
        "a2a-js drops a data part's null when it reads JSON; null is data (B001).",
        bindings=BOTH,
    ),
    Deviation(
        "whole numbers beyond 2^53",
        (JS_CLIENT, JS_SERVER),
        {"data": {"big": 9007199254740992}},
        "JavaScript's numbers are doubles: what is beyond 2^53 is rounded on its side; dragoman keeps it (AMB-48).",
    ),
    Deviation(
        "invalid parameters",
        (JS_CLIENT,),
        dict.fromkeys(
            ("no_parts", "no_role", "other_context", "page_size_0", "page_size_101", "page_token", "history_length"),
            _JS_INVALID,
        ),
        "Over HTTP+JSON and gRPC, a2a-js's client tells errors only by the reason of an ErrorInfo; INVALID_ARGUMENT "
        "with a BadRequest (§10.6, §11.6), which has none, becomes a general error.",
        bindings=("HTTP+JSON", "GRPC"),
    ),
    Deviation(
        "invalid parameters",
        (JS_SERVER,),
        {"no_parts": "none", "no_role": "none"},
        "a2a-js's server takes a message without parts or role, which are required (ERR-07).",
    ),
    Deviation(
        "invalid parameters",
        (JS_SERVER,),
        {"history_length": "none"},
        "Over JSON-RPC and gRPC, a2a-js's server takes a negative historyLength (ERR-07).",
        bindings=("JSONRPC", "GRPC"),
    ),
    Deviation(
        "push notifications, not offered",
        (JS_SERVER,),
        {"send": "none"},
        "a2a-js's server drops a webhook that comes with a message, instead of refusing what its card does not offer "
        "(§3.3.4, AMB-15).",
    ),
    Deviation(
        "other versions",
        (JS_SERVER,),
        {"patch": "VersionNotSupportedError"},
        "a2a-js's server refuses a version with a patch number, which does not count (§3.6, AMB-19).",
    ),
)

DEVIATIONS = (*A2A_SDK_1_3, *A2A_JS_1_3, *A2A_SDK_0_3, *A2A_JS_0_3, *FRAMEWORKS)


def deviations_of(scenario: str, who: str, binding: str) -> list[Deviation]:
    """Those that hold for one cell of the matrix."""
    return [
        known for known in DEVIATIONS if known.scenario == scenario and who in known.who and binding in known.bindings
    ]
