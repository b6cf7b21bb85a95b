"""Exceptions of the inside as errors of the protocol. Spec: ERR-13, AMB-37."""

from __future__ import annotations

import logging

from dragoman.errors import A2AError, ClientError, InternalError, InvalidAgentResponseError, UnavailableError
from dragoman.model import EncodingError

_log = logging.getLogger("dragoman.bindings")


def as_protocol_error(error: Exception, where: str) -> A2AError:
    """The error to tell the peer. What is not a protocol error is logged, once, and told neutrally.

    ``where`` names the operation or place for the log.
    """
    if isinstance(error, A2AError):
        return error
    if isinstance(error, ClientError):  # the operations are those of a client: a proxy
        _log.warning("%s: the agent behind this server cannot be reached: %s", where, error)
        return UnavailableError("The agent behind this server cannot be reached")
    _log.error("%s failed", where, exc_info=error)
    if isinstance(error, EncodingError):
        return InvalidAgentResponseError()
    return InternalError()
