"""The door to grpcio: everybody else takes it from here."""

from __future__ import annotations

from dragoman.errors import MissingExtraError

try:
    import grpc
    from grpc import aio
except ImportError as error:
    raise MissingExtraError("gRPC", "grpc") from error

__all__ = ["aio", "grpc"]
