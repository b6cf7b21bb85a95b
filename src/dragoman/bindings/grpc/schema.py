"""The protobuf messages of the protocol, in a descriptor pool of our own: the door to the protobuf library.

Other packages register the same message names in the library's default pool, and both have to run in one process; so
nothing is registered there. What the proto files import comes with the library.

Spec: GRPC-01, DATA-01.
"""

from __future__ import annotations

from typing import Any

from dragoman.bindings.grpc.descriptors import FILES
from dragoman.errors import MissingExtraError

try:
    from google.protobuf import any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError, EncodeError
    from google.protobuf.message_factory import GetMessageClass
except ImportError as error:
    raise MissingExtraError("gRPC", "grpc") from error

__all__ = ["PACKAGE", "POOL", "SERVICE", "DecodeError", "EncodeError", "message_class"]

PACKAGE = "lf.a2a.v1"
SERVICE = f"{PACKAGE}.A2AService"


def _make_pool() -> DescriptorPool:
    pool = DescriptorPool()
    for known in (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for file in FILES:
        pool.AddSerializedFile(file)
    return pool


POOL = _make_pool()
"""All that is spoken here."""


def message_class(name: str) -> Any:
    """The class of a message by its full name (``lf.a2a.v1.Task``). KeyError when there is none."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))
