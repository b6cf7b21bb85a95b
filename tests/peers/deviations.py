"""Where a peer does otherwise, as data: which one, in which scenario, what is seen instead, and why it is not ours to
mend. A deviation that is gone fails its test, so that it is taken out of here.
"""

from __future__ import annotations

import msgspec

from tests.peers.calling import Json

SDK_CLIENT = "its client"
SDK_SERVER = "its server"
BOTH = ("JSONRPC", "HTTP+JSON")


class Deviation(msgspec.Struct, frozen=True):
    """What is seen instead of the members of ``Scenario.expected`` that ``seen`` names."""

    scenario: str
    who: tuple[str, ...]
    seen: Json
    reason: str
    bindings: tuple[str, ...] = BOTH


_REST_INVALID = "A2AClientError"

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
            "no_parts": _REST_INVALID,
            "no_role": _REST_INVALID,
            "other_context": _REST_INVALID,
            "page_size_0": _REST_INVALID,
            "page_size_101": _REST_INVALID,
            "page_token": _REST_INVALID,
            "history_length": _REST_INVALID,
        },
        "Over HTTP+JSON, a2a-sdk's client tells errors only by the reason of an ErrorInfo, and looks for "
        "INVALID_PARAMS, which the specification does not have; 400 INVALID_ARGUMENT with a BadRequest (§11.6) becomes "
        "a general error.",
        bindings=("HTTP+JSON",),
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
)


def deviations_of(scenario: str, who: str, binding: str) -> list[Deviation]:
    """Those that hold for one cell of the matrix."""
    return [
        known for known in A2A_SDK_1_3 if known.scenario == scenario and who in known.who and binding in known.bindings
    ]
