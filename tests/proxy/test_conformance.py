"""The scenarios of conformance that a client can tell of, gone through a proxy.

Those are the tests that take ``connect``; here it connects to a proxy of the agent. What is not passed on by design is
in ``OTHERWISE``, with the reason.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Agent, App, Client, Limits, ProxyApp
from tests.conformance.quick_server import quick_serving

PAIRS = (("JSONRPC", "HTTP+JSON"), ("HTTP+JSON", "JSONRPC"), ("GRPC", "JSONRPC"), ("JSONRPC", "GRPC"))
"""The binding of the client, and that of the proxy."""

_NO_METHODS = "A proxy does not know which methods the extensions of its agent add."

OTHERWISE = {
    "test_extension_hooks_a_method_of_an_extension_is_called_on_every_binding": _NO_METHODS,
    "test_extension_hooks_a_method_is_refused_for_bad_params_and_to_who_did_not_activate_its_extension": _NO_METHODS,
    "test_extension_hooks_interceptors_see_methods_of_extensions_too": _NO_METHODS,
    "test_subscribe_a_waiting_task_can_be_subscribed_to_after_a_restart": "It makes a second app on one store, and a "
    "proxy has one address to go to; test_losses.py restarts the agent's server.",
    "test_push_followed_a_listener_of_0_3_is_told_whole_tasks_and_follows_the_same_way": "A proxy speaks 1.0 to this "
    "agent, which tells a webhook in the version that it was set by.",
}
"""Tests that do not hold through a proxy, and why."""

OF_THE_CALLER = ("client_credentials", "extended_card", "owners")
"""Files about who calls: the credentials of callers end at a proxy, unless it is told to pass them on; see
test_headers.py."""

CONFORMANCE = Path(__file__).parent.parent / "conformance"


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The two bindings."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def binding(pair: tuple[str, str]) -> str:
    """How data arrive: what one of the two bindings cannot carry does not come through."""
    return "GRPC" if "GRPC" in pair else pair[0]


@pytest.fixture
def store() -> str:
    """Where the agent's tasks live."""
    return "memory"


@pytest.fixture
async def connect(pair: tuple[str, str], binding: str, store: str) -> AsyncIterator[Callable[..., Awaitable[Client]]]:
    """As in tests/conformance/conftest.py, with a proxy in between."""
    near, far = pair
    async with AsyncExitStack() as stack:
        urls: dict[int, str] = {}

        async def serve(app: App) -> str:
            upstream = await stack.enter_async_context(quick_serving(app, grpc=far == "GRPC"))
            proxy = ProxyApp(upstream, bindings=(far,), shutdown_grace=0.2, infer_version=True)
            return await stack.enter_async_context(quick_serving(proxy, grpc=near == "GRPC"))  # type: ignore[arg-type]

        async def connect(
            agent: Agent | App, *, client_settings: dict[str, Any] | None = None, **settings: Any
        ) -> Client:
            settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
            app = agent if isinstance(agent, App) else App(agent, store=store, **settings)
            if id(app) not in urls:
                urls[id(app)] = await serve(app)
            given = client_settings or {}
            client = await stack.enter_async_context(dragoman.connect(urls[id(app)], bindings=(near,), **given))
            connect.app = app  # type: ignore[attr-defined]
            connect.url = urls[id(app)]  # type: ignore[attr-defined]
            return client

        yield connect


def _scenarios() -> dict[str, Any]:
    found = {}
    for file in sorted(CONFORMANCE.glob("test_*.py")):
        if file.stem.removeprefix("test_") in OF_THE_CALLER:
            continue
        module = importlib.import_module(f"tests.conformance.{file.stem}")
        for name, function in vars(module).items():
            if name.startswith("test_") and "connect" in inspect.signature(function).parameters:
                found[f"test_{file.stem.removeprefix('test_')}_{name.removeprefix('test_')}"] = function
    return found


globals().update({name: function for name, function in _scenarios().items() if name not in OTHERWISE})


def test_what_does_not_hold_is_known_to_conformance() -> None:
    assert set(OTHERWISE) <= set(_scenarios())
