"""What differs between the bindings by design, as data: every other difference is a fault."""

from __future__ import annotations

BIG = 2**53 + 1
"""An integer that a double cannot hold."""

BIG_ARRIVES_AS = {"in process": BIG, "JSONRPC": BIG, "HTTP+JSON": BIG, "GRPC": 2**53, "WebSocket": BIG}
"""``BIG`` in a data part or in metadata. protobuf has nothing but doubles there (Spec: AMB-48, B003)."""
