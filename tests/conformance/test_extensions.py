"""Extensions: declared, required, activated, echoed. Spec: §3.3.4, §4.6."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import RESUMABLE_STREAMS, Agent, Artifact, Part
from dragoman.model import OPERATIONS, AgentExtension
from tests.conformance.wire import SPOKEN, as_caller, bare, by_header, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
TRACE = "https://a2a-protocol.org/extensions/nothing-is-there/v1"
GEO, GEO_OLD = "https://ext.example/geo/v2", "https://ext.example/geo/v1"


def agent_with(*extensions: str | AgentExtension) -> Agent:
    agent = Agent("Reporter", description="Says which extensions are active.", extensions=extensions)

    @agent.task
    async def report(ctx):  # type: ignore[no-untyped-def]
        yield "active: "
        yield ",".join(ctx.extensions)

    return agent


def words(task: Any) -> str:
    return "".join(part["text"] for part in task["artifacts"][0]["parts"])


@pytest.mark.req("EXT-01", "EXT-16", "EXT-17")
async def test_the_card_declares_what_the_author_named_and_nothing_by_itself() -> None:
    declared = AgentExtension(uri=GEO, description="Places", required=True, params={"unit": "km"})
    async with served(agent_with(declared, TRACE)) as wire, served(agent_with()) as plain:
        card = (await wire.ask("GET", "/.well-known/agent-card.json")).json
        none = (await plain.ask("GET", "/.well-known/agent-card.json")).json

    geo, trace = card["capabilities"]["extensions"]
    assert geo == {"uri": GEO, "description": "Places", "required": True, "params": {"unit": "km"}}
    assert (trace["uri"], trace.get("required", False)) == (TRACE, False)
    assert not none["capabilities"].get("extensions")


@BOTH
@pytest.mark.req("EXT-02", "EXT-06", "EXT-08", "EXT-09", "EXT-18", "AMB-25")
async def test_what_is_asked_for_and_declared_becomes_active_and_is_echoed_the_rest_is_ignored(spoken: str) -> None:
    cases = [
        (None, ""),
        (TRACE, TRACE),
        (f"{GEO}, {TRACE}", f"{GEO},{TRACE}"),
        (f"https://unknown.example, {TRACE}", TRACE),
        (GEO_OLD, ""),
        (f"{GEO}/", ""),
    ]
    async with served(agent_with(GEO, TRACE)) as wire:
        for asked, active in cases:
            headers = {"A2A-Extensions": asked}
            told = await wire.call(spoken, "SendMessage", said(), headers=headers)
            assert words(told.result["task"]) == f"active: {active}"
            assert told.headers.get("a2a-extensions", "").replace(" ", "") == active

            async with wire.stream(spoken, "SendStreamingMessage", said(), headers=headers) as stream:
                assert stream.headers.get("a2a-extensions", "").replace(" ", "") == active
                await stream.rest()


@BOTH
@pytest.mark.req("EXT-03", "EXT-07", "EXT-08", "ERR-23", "AMB-23", "AMB-24")
async def test_a_required_extension_is_asked_of_every_operation_but_those_that_show_the_card(spoken: str) -> None:
    required = AgentExtension(uri=GEO, required=True)
    requests: dict[str, Any] = {
        "SendMessage": said(),
        "SendStreamingMessage": said(),
        "GetTask": {"id": "t"},
        "ListTasks": {},
        "CancelTask": {"id": "t"},
        "SubscribeToTask": {"id": "t"},
        "CreateTaskPushNotificationConfig": {"taskId": "t", "url": "https://hooks.example"},
        "GetTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
        "ListTaskPushNotificationConfigs": {"taskId": "t"},
        "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "c"},
    }
    async with served(agent_with(required, TRACE)) as wire:
        for operation, request in requests.items():
            for asked in (None, TRACE, GEO_OLD):
                told = await wire.call(spoken, operation, request, headers={"A2A-Extensions": asked})
                assert told.reason == "EXTENSION_SUPPORT_REQUIRED", operation
                assert GEO in told.metadata.values()
        card = await wire.ask("GET", "/.well-known/agent-card.json", headers={})
        extended = await wire.call(spoken, "GetExtendedAgentCard")
        named = await wire.call(spoken, "SendMessage", said(), headers={"A2A-Extensions": GEO})

    assert set(requests) == set(OPERATIONS) - {"GetExtendedAgentCard"}
    assert card.status == 200
    assert extended.reason == "UNSUPPORTED_OPERATION"
    assert words(named.result["task"]) == f"active: {GEO}"


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.req("EXT-02", "EXT-03", "EXT-15", "AMB-25")
async def test_a_client_that_names_a_required_extension_is_served(connect: Any) -> None:
    agent = agent_with(AgentExtension(uri=GEO, required=True), TRACE)
    refused = await connect(agent)
    with pytest.raises(dragoman.errors.ExtensionSupportRequiredError):
        await refused.send("hello")

    task = await refused.send("hello", extensions=[GEO, TRACE])

    assert "".join(part.text or "" for part in task.artifacts[0].parts) == f"active: {GEO},{TRACE}"


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@pytest.mark.req("EXT-10", "EXT-18", "AMB-26")
async def test_data_of_extensions_travels_in_metadata_under_their_uri_both_ways(connect: Any) -> None:
    agent = Agent("Places", description="Reads and writes metadata.", extensions=[GEO])

    @agent.task
    async def place(ctx):  # type: ignore[no-untyped-def]
        found = {key: value for key, value in ctx.metadata.items() if key.startswith(GEO)}
        yield Artifact(artifact_id="a", parts=[Part(text="here")], metadata=found, extensions=[GEO])

    client = await connect(agent)
    sent = {GEO: {"lat": 1}, f"{GEO}/unit": "km", "https://other.example": 1}
    task = await client.send("where?", extensions=[GEO], message_metadata=sent)

    assert task.artifacts[0].metadata == {GEO: {"lat": 1}, f"{GEO}/unit": "km"}
    assert task.artifacts[0].extensions == [GEO]
    assert task.history[0].metadata == sent


# The one extension that this package brings.


@BOTH
@pytest.mark.req("EXT-02", "EXT-17", "SUB-01")
async def test_streams_are_resumed_only_where_the_extension_is_declared_and_asked_for(spoken: str) -> None:
    for declared, asked in ((True, True), (True, False), (False, True)):
        agent = Agent("Asker", description="Asks.", extensions=[RESUMABLE_STREAMS] if declared else [])

        @agent.task
        async def ask(ctx):  # type: ignore[no-untyped-def]
            await ctx.update("one")
            await ctx.update("two")
            await ctx.ask("and?")

        headers: dict[str, str | None] = {
            "A2A-Extensions": RESUMABLE_STREAMS if asked else None,
            "Last-Event-ID": "2",
        }
        async with served(agent) as wire:
            task = (await wire.call(spoken, "SendMessage", said())).result["task"]
            async with wire.stream(spoken, "SubscribeToTask", {"id": task["id"]}, headers=headers) as stream:
                first = bare(await stream.next())
                echoed = stream.headers.get("a2a-extensions", "")

        if declared and asked:
            assert first["statusUpdate"]["status"]["message"]["parts"] == [{"text": "two"}]
            assert (stream.ids[0], echoed) == ("3", RESUMABLE_STREAMS)
        else:
            assert first["task"]["id"] == task["id"]
            assert echoed == ""


@BOTH
@pytest.mark.req("EXT-12")
async def test_an_event_number_that_means_nothing_gives_the_snapshot(spoken: str) -> None:
    agent = Agent("Asker", description="Asks.", extensions=[RESUMABLE_STREAMS])

    @agent.task
    async def ask(ctx):  # type: ignore[no-untyped-def]
        await ctx.ask("and?")

    async with served(agent) as wire:
        task = (await wire.call(spoken, "SendMessage", said())).result["task"]
        for number in ("", "-1", "1.5", "x", "9" * 40, "99999", "٣", "1 2"):
            headers: dict[str, Any] = {"A2A-Extensions": RESUMABLE_STREAMS, "Last-Event-ID": number.encode()}
            async with wire.stream(spoken, "SubscribeToTask", {"id": task["id"]}, headers=headers) as stream:
                first = bare(await stream.next())
            assert first["task"]["id"] == task["id"], number


@BOTH
@pytest.mark.req("EXT-13", "AUTH-08")
async def test_no_name_and_no_extension_leads_around_authentication(spoken: str) -> None:
    async with served(agent_with(GEO, RESUMABLE_STREAMS), identify=by_header) as wire:
        for headers in ({"A2A-Extensions": GEO}, {"A2A-Extensions": RESUMABLE_STREAMS, "Last-Event-ID": "1"}):
            told = await wire.call(spoken, "SubscribeToTask", {"id": "t"}, headers=headers)
            assert told.status == 401
        unknown = await wire.rpc("ext/geo/lookup", {})
        known = await wire.rpc("ext/geo/lookup", {}, headers=as_caller("ann"))

    assert unknown.status == 401
    assert known.code == -32601
