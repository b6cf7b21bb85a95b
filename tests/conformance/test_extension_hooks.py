"""Code of extensions, on both sides and on every binding. Spec: §4.6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from dragoman import Agent, App, Artifact, Part, TaskStatusUpdateEvent
from dragoman.errors import (
    ConfigurationError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    MethodNotFoundError,
    UnauthenticatedError,
)
from dragoman.extensions import ClientExtension, Method, ServerExtension, data_of, with_metadata
from dragoman.model import SendMessageRequest, SendMessageResponse, StreamResponse
from dragoman.ports.operations import CallContext
from tests.conformance.wire import SPOKEN, as_caller, by_header, said, served

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
MEMORY = pytest.mark.parametrize("store", ["memory"], indirect=True)
GEO, UNITS = "https://ext.example/geo/v1", "https://ext.example/units/v1"


class Place(msgspec.Struct, forbid_unknown_fields=True):
    lat: float
    lon: float


KEYS: Mapping[str, Any] = {GEO: Place, f"{GEO}/unit": str}


class Geo(ServerExtension):
    """Takes a place, says how far it is, and has a method."""

    uri = GEO
    description = "Places"
    keys = KEYS

    async def on_request(self, op: Any, request: Any, context: CallContext) -> Any:
        if not isinstance(request, SendMessageRequest):
            return request
        return with_metadata(request, {f"{GEO}/seen": True})

    async def on_response(self, op: Any, response: Any, context: CallContext) -> Any:
        return with_metadata(response, {f"{GEO}/far": 7}) if isinstance(response, SendMessageResponse) else response

    def on_event(self, op: Any, event: StreamResponse, context: CallContext) -> StreamResponse:
        return with_metadata(event, {f"{GEO}/far": 7}) if event.status_update is not None else event

    @property
    def methods(self) -> list[Method]:
        return [Method(name="geo/lookup", function=self.look_up, params=Place, path="/geo:lookup")]

    async def look_up(self, place: Place, context: CallContext) -> dict[str, Any]:
        return {"name": "Bern" if place.lat > 46 else "Bari", "caller": context.caller.id, "tenant": context.tenant}


class Asker(ClientExtension):
    """Tells where it is, and sees the answers."""

    uri = GEO

    def __init__(self, place: Any) -> None:
        self.place = place
        self.seen: list[Any] = []

    async def on_request(self, op: Any, request: Any, context: CallContext) -> Any:
        return with_metadata(request, {GEO: self.place}) if isinstance(request, SendMessageRequest) else request

    async def on_response(self, op: Any, response: Any, context: CallContext) -> Any:
        if isinstance(response, SendMessageResponse) and response.task is not None:
            self.seen.append(data_of(GEO, response.task.metadata))
        return response

    def on_event(self, op: Any, event: StreamResponse, context: CallContext) -> StreamResponse:
        if event.status_update is not None:
            self.seen.append(data_of(GEO, event.status_update.metadata))
        return event


def geo_agent(*more: Any, extension: Any = None) -> Agent:
    agent = Agent("Places", description="Knows places.", extensions=[extension or Geo(), *more])

    @agent.task
    async def place(ctx):  # type: ignore[no-untyped-def]
        await ctx.update("looking")
        yield Artifact(artifact_id="a", parts=[Part(data=dict(data_of(GEO, ctx.metadata)))])

    return agent


@MEMORY
@pytest.mark.req("EXT-02", "EXT-10", "EXT-11", "AMB-26")
async def test_code_of_both_sides_sees_and_changes_the_calls_for_which_its_extension_is_active(connect: Any) -> None:
    asker = Asker({"lat": 47.0, "lon": 7.0})
    client = await connect(geo_agent(), client_settings={"extensions": [asker]})

    task = await client.send("where?")
    events = [event async for event in client.stream("where?")]

    assert task.artifacts[0].parts[0].data == {GEO: {"lat": 47.0, "lon": 7.0}, f"{GEO}/seen": True}
    assert task.metadata == {f"{GEO}/far": 7}
    updates = [event for event in events if isinstance(event, TaskStatusUpdateEvent)]
    assert updates
    assert all(update.metadata == {f"{GEO}/far": 7} for update in updates)
    assert asker.seen == [{f"{GEO}/far": 7}] * (1 + len(updates))


@MEMORY
@pytest.mark.req("EXT-02", "EXT-06")
async def test_code_of_an_extension_that_is_not_asked_for_does_nothing(connect: Any) -> None:
    client = await connect(geo_agent())

    task = await client.send("where?", metadata={GEO: "no place at all"})

    assert task.metadata is None
    assert task.artifacts[0].parts[0].data == {GEO: "no place at all"}


@MEMORY
@pytest.mark.req("EXT-02", "EXT-06", "AMB-25")
async def test_a_client_keeps_its_code_from_agents_that_do_not_declare_the_extension(connect: Any) -> None:
    asker = Asker({"lat": 47.0, "lon": 7.0})
    client = await connect(geo_agent(extension="https://other.example/v1"), client_settings={"extensions": [asker]})

    task = await client.send("where?")

    assert (task.artifacts[0].parts[0].data, asker.seen) == ({}, [])


@MEMORY
@pytest.mark.req("EXT-12")
async def test_data_that_the_extension_does_not_define_is_refused_with_its_place_and_without_its_value(
    connect: Any,
) -> None:
    client = await connect(geo_agent(), client_settings={"extensions": [GEO]})
    bad: list[tuple[dict[str, Any], str]] = [
        ({"metadata": {GEO: {"lat": "north", "lon": 7.0}}}, f"metadata[{GEO}]"),
        ({"metadata": {GEO: {"lat": 1.0, "lon": 7.0, "secret": 1}}}, f"metadata[{GEO}]"),
        ({"message_metadata": {f"{GEO}/planet": "Mars"}}, f"message.metadata[{GEO}/planet]"),
        ({"message_metadata": {f"{GEO}#fragment": "s3cret"}}, f"message.metadata[{GEO}#fragment]"),
    ]

    for options, place in bad:
        with pytest.raises(InvalidParamsError) as refused:
            await client.send("where?", **options)
        assert [violation.field for violation in refused.value.violations] == [place]
        assert "s3cret" not in str(refused.value)
    with pytest.raises(InvalidParamsError):
        await client.send([Part(text="where?", metadata={GEO: 3})])
    neighbour = await client.send("where?", metadata={f"{GEO}0": "another extension", f"{GEO}/unit": "km"})

    assert neighbour.artifacts[0].parts[0].data == {f"{GEO}/unit": "km", f"{GEO}/seen": True}


@BOTH
@pytest.mark.req("EXT-03", "EXT-07", "EXT-08", "AMB-24")
async def test_what_is_required_and_missing_is_refused_before_any_code_sees_it_and_before_a_task_exists(
    spoken: str,
) -> None:
    class Required(Geo):
        required = True

        async def on_request(self, op: Any, request: Any, context: CallContext) -> Any:
            seen.append(op.name)
            return request

    seen: list[str] = []
    agent = geo_agent(extension=Required())
    async with served(agent) as wire:
        refused = await wire.call(spoken, "SendMessage", said(), headers={"A2A-Extensions": GEO.replace("v1", "v2")})
        listed = await wire.call(spoken, "ListTasks", {}, headers={"A2A-Extensions": GEO})

    assert refused.reason == "EXTENSION_SUPPORT_REQUIRED"
    assert GEO in refused.metadata["extensions"]
    assert listed.result["totalSize"] == 0
    assert seen == ["ListTasks"]


@MEMORY
@pytest.mark.req("EXT-15", "EXT-06")
async def test_an_extension_is_active_only_together_with_those_that_it_depends_on(connect: Any) -> None:
    class Needing(Geo):
        depends = (UNITS,)

    class NeedingAsker(Asker):
        depends = (UNITS,)

    asker = NeedingAsker({"lat": 47.0, "lon": 7.0})
    client = await connect(geo_agent(UNITS, extension=Needing()), client_settings={"extensions": [asker]})
    alone = await connect(connect.app, client_settings={"extensions": [GEO]})

    assert (await client.send("where?")).metadata == {f"{GEO}/far": 7}
    assert (await alone.send("where?")).metadata is None


@pytest.mark.req("EXT-15")
def test_an_agent_without_what_an_extension_depends_on_is_not_served() -> None:
    class Needing(Geo):
        depends = (UNITS,)

    with pytest.raises(ConfigurationError, match=UNITS):
        App(geo_agent(extension=Needing()))
    with pytest.raises(ConfigurationError, match="comma,in"):
        App(geo_agent("https://ext.example/comma,in"))


# Methods.


@MEMORY
@pytest.mark.req("EXT-11", "EXT-13")
async def test_a_method_of_an_extension_is_called_on_every_binding(connect: Any) -> None:
    client = await connect(geo_agent(), client_settings={"extensions": [GEO]})

    found = await client.call_method("geo/lookup", {"lat": 47.5, "lon": 7.0}, path="/geo:lookup")

    assert found == {"name": "Bern", "caller": "", "tenant": ""}


@MEMORY
@pytest.mark.req("EXT-12", "EXT-13", "EXT-02")
async def test_a_method_is_refused_for_bad_params_and_to_who_did_not_activate_its_extension(connect: Any) -> None:
    client = await connect(geo_agent())
    with pytest.raises(ExtensionSupportRequiredError):
        await client.call_method("geo/lookup", {"lat": 47.5, "lon": 7.0}, path="/geo:lookup")
    with pytest.raises(InvalidParamsError) as refused:
        await client.call_method("geo/lookup", {"lat": "x", "lon": 7}, path="/geo:lookup", extensions=[GEO])
    with pytest.raises(MethodNotFoundError):
        await client.call_method("geo/nothing", {}, path="/geo:nothing", extensions=[GEO])

    assert refused.value.violations[0].field == "params"


@BOTH
@pytest.mark.req("EXT-13", "AUTH-05", "SEC-03", "VER-07", "TEN-05")
async def test_a_method_passes_the_same_checks_as_the_protocols_own(spoken: str) -> None:
    async def lookup(wire: Any, body: Any, headers: Any, tenant: str = "") -> Any:
        headers = {"A2A-Extensions": GEO, **headers}
        if spoken == "JSONRPC":
            return await wire.rpc("geo/lookup", body, headers=headers)
        path = f"/{tenant}/geo:lookup" if tenant else "/geo:lookup"
        return await wire.rest("POST", path, body, headers=headers)

    place = {"lat": 47.5, "lon": 7.0}
    async with served(geo_agent(), identify=by_header, max_body_bytes=1000) as wire:
        stranger = await lookup(wire, place, {})
        known = await lookup(wire, place, as_caller("ann"))
        large = await lookup(wire, {**place, "more": "x" * 2000}, as_caller("ann"))
        old = await lookup(wire, place, {**as_caller("ann"), "A2A-Version": "9.9"})
        in_older = await lookup(wire, place, {**as_caller("ann"), "A2A-Version": "0.3"})
        tenant = await lookup(
            wire, place if spoken == "HTTP+JSON" else {**place, "tenant": "acme"}, as_caller("ann"), "acme"
        )

    assert stranger.status == 401
    assert known.result == {"name": "Bern", "caller": "ann", "tenant": ""}
    assert known.headers["a2a-extensions"] == GEO
    assert large.status == 413
    assert old.reason == "VERSION_NOT_SUPPORTED"
    assert in_older.status >= 400 or "error" in in_older.json
    assert tenant.result["name"] == "Bern"


@MEMORY
@pytest.mark.req("EXT-13", "AUTH-09")
async def test_interceptors_see_methods_of_extensions_too(connect: Any) -> None:
    class Gate:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def call(self, op: Any, request: Any, context: Any) -> Any:
            if op.name == "geo/lookup":
                raise UnauthenticatedError
            return await self.inner.call(op, request, context)

        async def stream(self, op: Any, request: Any, context: Any) -> Any:
            return await self.inner.stream(op, request, context)

    client = await connect(geo_agent(), interceptors=[cast(Any, Gate)], client_settings={"extensions": [GEO]})

    with pytest.raises(UnauthenticatedError):
        await client.call_method("geo/lookup", {"lat": 1, "lon": 1}, path="/geo:lookup")


@pytest.mark.req("EXT-11", "EXT-13")
@pytest.mark.parametrize(
    ("name", "path"),
    [("SendMessage", ""), ("gettask", ""), ("message/send", ""), ("bad name", ""), ("x", "/tasks/x"), ("x", "/{id}")],
)
def test_a_method_takes_no_name_and_no_path_of_the_protocol(name: str, path: str) -> None:
    class Greedy(ServerExtension):
        uri = GEO

        @property
        def methods(self) -> list[Method]:
            return [Method(name=name, function=cast(Any, None), path=path)]

    with pytest.raises(ConfigurationError):
        App(geo_agent(extension=Greedy()))
