"""The protobuf messages of ``a2a.v1``, in the pool that those of 1.0 are in.

Spec: v0.3 §4.1, §4.8.
"""

from __future__ import annotations

from dragoman.bindings.grpc.schema import POOL
from dragoman.compat.v03.grpc.descriptors import FILES

__all__ = ["PACKAGE", "SERVICE"]

PACKAGE = "a2a.v1"
SERVICE = f"{PACKAGE}.A2AService"

for _file in FILES:
    POOL.AddSerializedFile(_file)
