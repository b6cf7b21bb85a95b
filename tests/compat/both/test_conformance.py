"""The scenarios of conformance that a client can tell of, gone through in version 0.3 on both sides.

Those are the tests that take ``connect``; here it connects by 0.3. Where they look around by listing tasks, which 0.3
cannot, they are helped out by 1.0. What 0.3 does otherwise is in ``OTHERWISE``, with the reason.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman import Agent, App, Client, Limits
from dragoman.model import LIST_TASKS, Operation
from dragoman.ports.operations import CallContext, EventStream, Operations
from tests.compat.both.conftest import BINDINGS
from tests.conformance.quick_server import quick_serving

_NAMES = "0.3 has no place for the file name and the media type of texts and data."
_EXTENDED = "0.3 answers AuthenticatedExtendedCardNotConfiguredError where 1.0 has UnsupportedOperationError."
_NO_TENANT = "0.3 has no tenants."
_IN_NAMES = "Over HTTP+JSON and gRPC, 0.3 has ids in resource names, which cannot hold a slash, nor be told from them."
_WHOLE = "0.3 tells webhooks the whole task each time; see test_push.py."
_QUESTION = "In 0.3 a stream ends at a question."
_NO_METHODS = "Methods that extensions add are those of 1.0."

OTHERWISE = {
    "test_send_metadata_and_tenant_of_the_request_reach_the_agent": _NO_TENANT,
    "test_data_parts_every_kind_of_part_comes_back_as_it_was_sent": _NAMES,
    "test_data_parts_a_stream_brings_the_same_content_as_the_answer_to_a_message": _NAMES,
    "test_send_a_part_of_a_type_that_the_agent_does_not_take_is_refused_before_any_work": _NAMES,
    "test_data_parts_a_resource_name_is_no_id": _IN_NAMES,
    "test_data_parts_ids_are_opaque_text": _IN_NAMES,
    "test_get_task_a_negative_history_length_and_an_empty_id_are_refused_by_name": _IN_NAMES,
    "test_extended_card_refused_a_client_is_refused_by_itself_or_by_the_agent_alike": _EXTENDED,
    "test_push_configurations_are_listed_in_pages": "0.3 has no pages of them.",
    "test_extended_card_it_is_signed_as_the_public_one_is_and_verified_by_the_same_policy": "What is signed is the "
    "card of 1.0, which is translated here.",
    "test_owners_page_tokens_are_good_for_the_caller_who_got_them_only": "0.3 has no pages of configurations.",
    "test_push_a_configuration_that_cannot_be_used_is_refused_by_its_fields": "0.3 calls the fields otherwise, and "
    "takes authentication without a scheme.",
    "test_push_a_configuration_inside_a_message_counts_from_the_first_event_on": _WHOLE,
    "test_push_a_configuration_inside_a_further_message_counts_from_there_on": _WHOLE,
    "test_subscribe_a_waiting_task_is_followed_through_its_answer_to_its_end": _QUESTION,
    "test_subscribe_a_waiting_task_can_be_subscribed_to_after_a_restart": _QUESTION,
    "test_extension_hooks_a_method_of_an_extension_is_called_on_every_binding": _NO_METHODS,
    "test_extension_hooks_a_method_is_refused_for_bad_params_and_to_who_did_not_activate_its_extension": _NO_METHODS,
    "test_extension_hooks_interceptors_see_methods_of_extensions_too": _NO_METHODS,
}
"""Tests that do not hold in 0.3, and why."""

CONFORMANCE = Path(__file__).parent.parent.parent / "conformance"


class Lister:
    """Operations that list tasks by another version."""

    def __init__(self, inner: Operations, other: Operations) -> None:
        self._inner = inner
        self._other = other

    async def call(self, op: Operation, request: msgspec.Struct, context: CallContext) -> msgspec.Struct:
        return await (self._other if op is LIST_TASKS else self._inner).call(op, request, context)

    async def stream(self, op: Operation, request: msgspec.Struct, context: CallContext) -> EventStream:
        return await self._inner.stream(op, request, context)


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> str:
    """How the client reaches the agent. Tests that are content with no wire at all get the first."""
    return request.param if request.param in BINDINGS else BINDINGS[0]


@pytest.fixture
def store() -> str:
    """Where the agent's tasks live."""
    return "memory"


@pytest.fixture
async def connect(binding: str, store: str) -> AsyncIterator[Callable[..., Awaitable[Client]]]:
    """As in tests/conformance/conftest.py, by 0.3."""
    async with AsyncExitStack() as stack:
        urls: dict[int, str] = {}

        async def connect(
            agent: Agent | App, *, client_settings: dict[str, Any] | None = None, **settings: Any
        ) -> Client:
            settings.setdefault("limits", Limits(shutdown_grace=0.2, lease=2, cancel_wait=2))
            app = agent if isinstance(agent, App) else App(agent, store=store, **settings)
            if id(app) not in urls:
                urls[id(app)] = await stack.enter_async_context(quick_serving(app, grpc=binding == "GRPC"))
            given = {"bindings": (binding,), **(client_settings or {})}
            present = await stack.enter_async_context(dragoman.connect(urls[id(app)], versions=("1.0",), **given))
            given["interceptors"] = [
                *given.get("interceptors", ()),
                lambda operations: Lister(operations, present.operations),
            ]
            client = await stack.enter_async_context(dragoman.connect(urls[id(app)], versions=("0.3",), **given))
            connect.app = app  # type: ignore[attr-defined]
            connect.url = urls[id(app)]  # type: ignore[attr-defined]
            return client

        yield connect


def _scenarios() -> dict[str, Any]:
    found = {}
    for file in sorted(CONFORMANCE.glob("test_*.py")):
        module = importlib.import_module(f"tests.conformance.{file.stem}")
        for name, function in vars(module).items():
            if name.startswith("test_") and "connect" in inspect.signature(function).parameters:
                found[f"test_{file.stem.removeprefix('test_')}_{name.removeprefix('test_')}"] = function
    return {name: function for name, function in found.items() if not name.startswith("test_list_tasks_")}


globals().update({name: function for name, function in _scenarios().items() if name not in OTHERWISE})


def test_what_does_not_hold_is_known_to_conformance() -> None:
    assert set(OTHERWISE) <= set(_scenarios())
