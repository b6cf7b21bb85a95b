"""What a deviation of a peer is, and who the peers are."""

from __future__ import annotations

import msgspec

from tests.peers.calling import Json

SDK_CLIENT = "its client"
SDK_SERVER = "its server"
JS_CLIENT = "client of a2a-js"
JS_SERVER = "server of a2a-js"
SDK_03_CLIENT = "client of a2a-sdk 0.3"
SDK_03_SERVER = "server of a2a-sdk 0.3"
JS_03_CLIENT = "client of a2a-js 0.3"
JS_03_SERVER = "server of a2a-js 0.3"
FASTA2A_SERVER = "server of fasta2a 2"
FASTA2A_03_SERVER = "server of fasta2a 0.6"
STRANDS_SERVER = "server of strands-agents"
BOTH = ("JSONRPC", "HTTP+JSON")
ALL = (*BOTH, "GRPC")


class Deviation(msgspec.Struct, frozen=True):
    """What is seen instead of the members of ``Scenario.expected`` that ``seen`` names.

    ``{"refused": error}``: the scenario cannot be gone through, since the client raises that. ``hangs``: the peer never
    answers, so that it is not gone through at all.
    """

    scenario: str
    who: tuple[str, ...]
    seen: Json
    reason: str
    bindings: tuple[str, ...] = ALL
    hangs: bool = False

    @property
    def stops(self) -> bool:
        """Whether the scenario cannot be gone through."""
        return self.hangs or "refused" in self.seen
