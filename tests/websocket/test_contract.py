"""Every binding keeps the contract, and so does one that is made in a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import ClassVar

import pytest

from dragoman.bindings.websocket import WebSocketBinding
from dragoman.errors import (
    A2AError,
    InvalidRequestError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RateLimitedError,
    RemoteError,
    UnauthenticatedError,
)
from dragoman.testing.binding_contract import BindingContract, Reach, reaching
from tests.websocket.lines import LinesBinding

for _part in BindingContract.__mro__:
    for _test in vars(_part).values():
        if hasattr(_test, "requirements"):
            pytest.mark.req(*_test.requirements)(_test)


class TestWebSocket(BindingContract):
    @pytest.fixture
    async def reach(self) -> AsyncIterator[Reach]:
        async with reaching(WebSocketBinding()) as reach:
            yield reach


class TestInProcess(BindingContract):
    @pytest.fixture
    async def reach(self) -> AsyncIterator[Reach]:
        async with reaching("in process") as reach:
            yield reach


class TestJsonRpc(BindingContract):
    @pytest.fixture
    async def reach(self) -> AsyncIterator[Reach]:
        async with reaching("JSONRPC") as reach:
            yield reach


class TestHttpJson(BindingContract):
    @pytest.fixture
    async def reach(self) -> AsyncIterator[Reach]:
        async with reaching("HTTP+JSON") as reach:
            yield reach


class TestGrpc(BindingContract):
    biggest_number: ClassVar[int] = 2**53

    @pytest.fixture
    async def reach(self) -> AsyncIterator[Reach]:
        async with reaching("GRPC") as reach:
            yield reach


class TestOneThatListensByItself(BindingContract):
    """Its errors are those of JSON-RPC without HTTP statuses, which lack some."""

    coarser: ClassVar[Mapping[type[A2AError], type[A2AError]]] = {
        UnauthenticatedError: RemoteError,
        PermissionDeniedError: RemoteError,
        RateLimitedError: RemoteError,
        PayloadTooLargeError: InvalidRequestError,
    }

    @pytest.fixture
    async def reach(self) -> AsyncIterator[Reach]:
        async with reaching(LinesBinding()) as reach:
            yield reach
