"""How the tests of the contract reach an agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar

from dragoman.bindings.grpc.settings import GrpcServerSettings
from dragoman.client import Client, connect
from dragoman.errors import A2AError
from dragoman.ports.binding import Binding
from dragoman.ports.operations import Operations
from dragoman.runtime import Limits
from dragoman.server import Agent, App
from dragoman.testing.serving import serving

Test = TypeVar("Test", bound=Callable[..., Awaitable[None]])

BOUND = 10.0
"""Seconds that anything a test waits for may take."""


def proves(*requirements: str) -> Callable[[Test], Test]:
    """Name the rows of the register that a test proves."""

    def mark(test: Test) -> Test:
        test.__dict__["requirements"] = requirements
        return test

    return mark


class Reached:
    """An agent that is served and called: the ``app``, the ``client`` of it, and the client's ``operations``.

    ``binding`` is its name on the card (empty in process), ``url`` the address of the app.
    """

    def __init__(self, app: App, client: Client, binding: str, url: str) -> None:
        self.app = app
        self.client = client
        self.operations: Operations = client.operations
        self.binding = binding
        self.url = url


class Reach(Protocol):
    """``reached = await reach(agent, **settings)``: serve an agent, and connect to it over the binding under test."""

    async def __call__(
        self, agent: Agent | App, *, client_settings: dict[str, Any] | None = None, **settings: Any
    ) -> Reached:
        """``settings`` are those of App, ``client_settings`` those of connect. An App that was reached before gets
        another client. All is ended with the test."""
        ...


@asynccontextmanager
async def reaching(binding: Binding | str) -> AsyncIterator[Reach]:
    """The way to reach agents over a binding, until the block ends."""
    async with AsyncExitStack() as stack:
        yield _Reach(binding, stack)


class _Reach:
    def __init__(self, binding: Binding | str, stack: AsyncExitStack) -> None:
        self._name = binding if isinstance(binding, str) else binding.uri
        self._binding = binding
        self._custom: Sequence[Binding] = () if isinstance(binding, str) else (binding,)
        self._stack = stack
        self._urls: dict[int, str] = {}

    async def __call__(
        self, agent: Agent | App, *, client_settings: dict[str, Any] | None = None, **settings: Any
    ) -> Reached:
        settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
        app = agent if isinstance(agent, App) else App(agent, bindings=self._custom, **settings)
        given = client_settings or {}
        if self._name == "in process":
            await self._stack.enter_async_context(app)
            client = await self._stack.enter_async_context(connect(app, **given))
            return Reached(app, client, "", "")
        url = self._urls.get(id(app)) or await self._serve(app)
        client = await self._stack.enter_async_context(connect(url, bindings=[self._binding], **given))
        return Reached(app, client, self._name, url)

    async def _serve(self, app: App) -> str:
        grpc = GrpcServerSettings(port=0) if self._name == "GRPC" else None
        url = self._urls[id(app)] = await self._stack.enter_async_context(serving(app, grpc=grpc))
        return url


async def refusal(call: Awaitable[object]) -> A2AError:
    """The error of a call that must be refused."""
    try:
        answer = await call
    except A2AError as error:
        return error
    raise AssertionError(f"it was not refused: {answer!r}")
