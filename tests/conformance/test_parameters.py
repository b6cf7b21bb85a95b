"""Service parameters: what travels beside a request. Spec: §3.2.6, §9.2, §11.2."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman import Agent
from dragoman.model import Message, Part, Role, SendMessageRequest
from tests.client.words import card, connect_to, task
from tests.conformance.wire import SPOKEN, Wire, said, served
from tests.http.peer import as_json, peer, result

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
ONE, TWO = "https://ext.example/one/v1", "https://ext.example/Two/v1"
THREE, FOUR = "https://ext.example/three", "https://ext.example/four"


def reporting_agent() -> Agent:
    agent = Agent("Reporter", description="Says which extensions are active.", extensions=[ONE, TWO])

    @agent.reply
    async def report(ctx):  # type: ignore[no-untyped-def]
        return {"active": list(ctx.extensions)}

    return agent


async def active(wire: Wire, spoken: str, pairs: list[tuple[str, str]]) -> Any:
    """The extensions that the agent sees for a request with these header fields."""
    headers = [("A2A-Version", "1.0"), ("Content-Type", "application/json"), *pairs]
    body: Any = said()
    if spoken == "JSONRPC":
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": body}
    path = "/" if spoken == "JSONRPC" else "/message:send"
    told = await wire.ask("POST", path, json.dumps(body).encode(), headers)
    return told.result["message"]["parts"][0]["data"]["active"]


@BOTH
@pytest.mark.req("PARAM-01", "PARAM-03", "PARAM-04", "PARAM-05", "PARAM-07", "AMB-21", "AMB-22")
async def test_names_ignore_case_values_do_not_and_repeated_fields_are_joined(spoken: str) -> None:
    cases: list[tuple[list[tuple[str, str]], list[str]]] = [
        ([("A2A-Extensions", ONE)], [ONE]),
        ([("a2a-extensions", f"{ONE},{TWO}")], [ONE, TWO]),
        ([("A2A-EXTENSIONS", f"{TWO} ,,  {ONE}  ,")], [TWO, ONE]),
        ([("A2A-Extensions", ONE), ("a2a-extensions", TWO)], [ONE, TWO]),
        ([("A2A-Extensions", ONE.upper()), ("A2A-Extensions", TWO.lower())], []),
        ([("X-A2A-Extensions", ONE)], [ONE]),
        ([("A2A-Extensions", f"{ONE}, {ONE}")], [ONE]),
        ([], []),
    ]
    async with served(reporting_agent()) as wire:
        for pairs, expected in cases:
            assert await active(wire, spoken, pairs) == expected, pairs


@BOTH
@pytest.mark.req("PARAM-01")
async def test_other_headers_reach_the_operations_under_lower_case_names(spoken: str) -> None:
    seen: dict[str, str] = {}

    def remember(operations: Any) -> Any:
        class Remembering:
            async def call(self, op: Any, request: Any, context: Any) -> Any:
                seen.update(context.parameters)
                return await operations.call(op, request, context)

        return Remembering()

    async with served(reporting_agent(), interceptors=[remember]) as wire:
        await wire.call(spoken, "ListTasks", headers={"X-Trace-Me": "AbC"})

    assert seen["x-trace-me"] == "AbC"
    assert seen["a2a-version"] == "1.0"


# The client.


@BOTH
@pytest.mark.req("PARAM-03", "PARAM-04", "PARAM-05", "PARAM-07", "EXT-02", "EXT-15", "B159")
async def test_the_client_joins_its_own_and_the_calls_extensions_in_one_field_and_changes_no_input(spoken: str) -> None:
    async with peer() as server:
        server.on("POST", "/", result({"task": task("COMPLETED")}))
        server.on("POST", "/message:send", as_json({"task": task("COMPLETED")}))
        own = {"X-Own": "1", "A2A-Extensions": THREE}
        at_call = {"X-Call": "2", "a2a-extensions": f"{TWO}, {ONE}"}
        extensions, more = [ONE], [FOUR]
        async with connect_to(server, spoken, headers=own, extensions=extensions) as client:
            await client.send("hello", headers=at_call, extensions=more)
            await client.send("hello")

    first, second = (request.headers for request in server.received)
    assert [uri.strip() for uri in first["a2a-extensions"].split(",")] == [ONE, THREE, FOUR, TWO]
    assert [uri.strip() for uri in second["a2a-extensions"].split(",")] == [ONE, THREE]
    assert (first["x-own"], first["x-call"], second["x-own"], second.get("x-call")) == ("1", "2", "1", None)
    assert own == {"X-Own": "1", "A2A-Extensions": THREE}
    assert at_call == {"X-Call": "2", "a2a-extensions": f"{TWO}, {ONE}"}
    assert (extensions, more) == ([ONE], [FOUR])


@BOTH
@pytest.mark.req("B159", "CARD-10", "TEN-02")
async def test_one_message_sent_by_two_clients_with_different_tenants_stays_as_it_was(spoken: str) -> None:
    message = Message(message_id="m-1", role=Role.USER, parts=[Part(text="hello")], metadata={"k": [1]})
    request = SendMessageRequest(message=message)
    before = dragoman.model.encode_json(request)
    async with peer() as server:
        for path in ("", "/a", "/b"):
            server.on("POST", path or "/", result({"task": task("COMPLETED")}))
            server.on("POST", f"{path}/message:send", as_json({"task": task("COMPLETED")}))
        for tenant in ("a", "b"):
            entry = {"url": server.url, "protocolBinding": spoken, "protocolVersion": "1.0", "tenant": tenant}
            async with connect_to(server, card=card(server.url, supportedInterfaces=[entry])) as client:
                await client.send(message, metadata={"x": 1}, history_length=1)

    assert dragoman.model.encode_json(request) == before
    bodies = [received.json.get("params", received.json) for received in server.received]
    assert [body["tenant"] for body in bodies] == ["a", "b"]


@pytest.mark.req("PARAM-03", "SEC-05")
async def test_the_client_sends_no_other_parameter_of_the_protocol_than_the_two() -> None:
    async with peer() as server:
        server.on("POST", "/", result({"task": task("COMPLETED")}))
        async with connect_to(server) as client:
            await client.send("hello")

    assert {name for name in server.received[0].headers if name.startswith("a2a-")} == {"a2a-version"}
