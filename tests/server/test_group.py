"""Several agents at one server, by path and by tenant. Spec: topic multi-tenancy, §8.3.2."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest

import dragoman
from dragoman import Agent, AgentGroup, App, Client, Limits
from dragoman.auth import ApiKeys
from dragoman.bindings.websocket import WebSocketBinding
from dragoman.errors import ConfigurationError, InvalidParamsError, TaskNotFoundError, UnauthenticatedError
from dragoman.model import Task, TaskState
from dragoman.ports.clock import SystemClock
from tests.conformance.quick_server import quick_serving
from tests.conformance.wire import as_caller, by_header

QUICK = Limits(shutdown_grace=0.2, lease=2, cancel_wait=2)
BY = pytest.mark.parametrize("by", ["path", "tenant"])
WAYS = [(by, binding) for by in ("path", "tenant") for binding in ("JSONRPC", "HTTP+JSON", "GRPC")]
WAYS.append(("path", "WebSocket"))  # custom bindings have endpoints, which are told apart by path


def agent_called(name: str, **settings: Any) -> Agent:
    agent = Agent(name, description=f"Is {name}.", **settings)

    @agent.task
    async def work(ctx):  # type: ignore[no-untyped-def]
        if ctx.text == "ask":
            await ctx.ask("and?")
        return f"{name} for {ctx.tenant!r}"

    return agent


def two(by: str = "path", **settings: Any) -> AgentGroup:
    agents = {"billing": agent_called("Billing"), "travel": agent_called("Travel")}
    return AgentGroup(agents, by=by, limits=QUICK, **settings)  # type: ignore[arg-type]


@asynccontextmanager
async def clients(group: AgentGroup, binding: str = "JSONRPC", **given: Any) -> AsyncIterator[dict[str, Client]]:
    """The group on a socket, and a client of each agent, which knows nothing but where its card is."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(quick_serving(group, grpc=binding == "GRPC"))
        spoken = (WebSocketBinding() if binding == "WebSocket" else binding,)
        yield {
            name: await stack.enter_async_context(dragoman.connect(f"{url}/{name}", bindings=spoken, **given))
            for name in group
        }


def text_of(task: Any) -> str:
    assert isinstance(task, Task)
    return task.artifacts[0].parts[0].text or ""


@pytest.mark.parametrize(("by", "binding"), WAYS)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.req("TEN-01", "TEN-02", "TEN-03", "TEN-04", "TEN-05", "TEN-06", "AUTH-10", "CARD-01", "CARD-06", "AMB-89")
async def test_each_agent_has_its_card_and_its_tasks_and_knows_nothing_of_the_other(
    by: str, binding: str, kind: str, tmp_path: Any
) -> None:
    bindings = {"bindings": [WebSocketBinding()]} if binding == "WebSocket" else {}
    store = None if kind == "memory" else f"sqlite:///{tmp_path}/tasks.db"
    async with clients(two(by, store=store, **bindings), binding) as found:
        billing, travel = found["billing"], found["travel"]
        done, asking = await billing.send("hi"), await billing.send("ask")
        theirs = await travel.send("hi")
        assert isinstance(asking, Task)

        assert (billing.card.name, travel.card.name) == ("Billing", "Travel")
        assert text_of(done) == "Billing for ''"
        assert text_of(theirs) == "Travel for ''"
        for call in (travel.get_task(asking.id), travel.cancel(asking.id), travel.send("x", task_id=asking.id)):
            with pytest.raises(TaskNotFoundError):
                await call
        with pytest.raises(TaskNotFoundError):
            await anext(aiter(travel.subscribe(asking.id)))
        assert {task.id for task in (await billing.list_tasks()).tasks} == {asking.id, done.id}  # type: ignore[union-attr]
        assert (await travel.list_tasks()).total_size == 1
        assert (await billing.cancel(asking.id)).status.state is TaskState.CANCELED


@BY
@pytest.mark.req("TEN-02", "TEN-04", "CARD-10")
async def test_a_card_says_how_its_agent_is_told_from_the_others(by: str) -> None:
    async with quick_serving(two(by), grpc=True) as url, httpx2.AsyncClient(base_url=url) as http:
        card = (await http.get("/billing/.well-known/agent-card.json", headers={"A2A-Version": "1.0"})).json()
        root = await http.get("/.well-known/agent-card.json")
        health = await http.get("/health")
        nobody = await http.get("/nobody/.well-known/agent-card.json")

    entries = {(e["protocolBinding"], e["protocolVersion"]): e for e in card["supportedInterfaces"]}
    places = {key[0]: (entry["url"].replace(url, ""), entry.get("tenant", "")) for key, entry in entries.items()}
    if by == "path":
        assert places["JSONRPC"] == ("/billing/", "")
        assert places["HTTP+JSON"] == ("/billing", "")
        assert ("JSONRPC", "0.3") in entries
    else:
        assert places["JSONRPC"] == places["HTTP+JSON"] == ("", "billing")
        assert {version for _, version in entries} == {"1.0"}
    assert places["GRPC"][1] == "billing"
    assert (root.status_code, nobody.status_code, health.status_code) == (404, 404, 200)


@pytest.mark.req("TEN-01", "TEN-05", "AUTH-10", "AMB-89")
async def test_by_tenant_a_request_has_to_name_an_agent_and_may_name_a_tenant_of_it() -> None:
    async with quick_serving(two("tenant")) as url, httpx2.AsyncClient(base_url=url) as http:

        async def send(tenant: str) -> Any:
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
            params = {"message": message, **({"tenant": tenant} if tenant else {})}
            body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
            return (await http.post("/", json=body, headers={"A2A-Version": "1.0"})).json()

        inner, by_path = await send("billing/acme"), await http.get("/travel/tasks", headers={"A2A-Version": "1.0"})
        refused = [await send(""), await send("nobody"), await send("Billing")]

    assert text_in(inner) == "Billing for 'acme'"
    assert by_path.json()["totalSize"] == 0
    for told in refused:
        assert told["error"]["code"] == InvalidParamsError.code
        assert "tenant" in str(told["error"]["data"])


def text_in(told: Any) -> Any:
    return told["result"]["task"]["artifacts"][0]["parts"][0]["text"]


@BY
@pytest.mark.req("AUTH-05", "AUTH-08", "TEN-05")
async def test_callers_are_identified_for_every_agent(by: str) -> None:
    group = two(by, identify=by_header)
    async with clients(group, headers=as_caller("ann")) as found:
        task = await found["billing"].send("hi")
        async with dragoman.connect(found["billing"].card) as nobody:
            with pytest.raises(UnauthenticatedError):
                await nobody.get_task(task.id)
        async with dragoman.connect(found["billing"].card, headers=as_caller("bob")) as bob:
            with pytest.raises(TaskNotFoundError):
                await bob.get_task(task.id)


@pytest.mark.req("AUTH-05", "AUTH-07")
async def test_an_agents_own_security_holds_by_path_and_cannot_be_had_where_agents_share_an_address() -> None:
    keys = ApiKeys({"k" * 32: "ann"}, name="X-API-Key")
    agents = {"safe": agent_called("Safe", security=keys), "open": agent_called("Open")}
    group = AgentGroup(agents, limits=QUICK)
    async with clients(group) as found:
        await found["open"].send("hi")
        with pytest.raises(UnauthenticatedError):
            await found["safe"].send("hi")

    with pytest.raises(ConfigurationError, match="'safe' has its own security"):
        AgentGroup(agents, by="tenant")
    with pytest.raises(ConfigurationError, match="over gRPC"):
        async with quick_serving(AgentGroup(agents, limits=QUICK), grpc=True):
            raise AssertionError
    AgentGroup(agents, by="tenant", security=keys)


@pytest.mark.parametrize(
    ("agents", "settings", "said"),
    [
        ({}, {}, "at least one"),
        ({"a b": 1}, {}, "part of addresses"),
        ({"tasks": 1}, {}, "part of addresses"),
        ({"..": 1}, {}, "part of addresses"),
        ({"a": 1}, {"by": "host"}, "by 'host'"),
        ({"a": 1}, {"by": "tenant", "versions": ("0.3",)}, "no tenants"),
        ({"a": 1}, {"by": "tenant", "bindings": [WebSocketBinding()]}, "by path"),
        ({"a": 1}, {"namespace": "x"}, "namespace"),
    ],
)
def test_a_group_that_cannot_be_is_refused(agents: Any, settings: Any, said: str) -> None:
    made = {name: agent_called("A") for name in agents}
    with pytest.raises(ConfigurationError, match=said):
        AgentGroup(made, **settings)


# One store.


class Ahead(SystemClock):
    """A clock by which whoever was alive a moment ago has been dead for long."""

    def now_ms(self) -> int:
        return super().now_ms() + 60_000


@pytest.mark.req("TEN-03", "AUTH-10")
async def test_no_agent_takes_over_tasks_that_another_one_lost(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    began, ran = asyncio.Event(), []

    def working(name: str) -> Agent:
        agent = Agent(name, description=name)

        @agent.task(rerun=True)
        async def work(ctx):  # type: ignore[no-untyped-def]
            ran.append(name)
            if name == "One" and ran.count("One") == 1:
                began.set()
                await asyncio.Event().wait()
            return f"by {name}"

        return agent

    async with App(working("One"), store=store, limits=QUICK) as lost, dragoman.connect(lost) as client:
        task = await client.send("go", wait=False)
        assert isinstance(task, Task)
        await began.wait()

        late: dict[str, Any] = {"store": store, "limits": QUICK, "clock": Ahead()}
        async with App(working("Two"), **late) as other, dragoman.connect(other) as stranger:
            with pytest.raises(TaskNotFoundError):
                await stranger.get_task(task)
            await other.runtime._janitor._take_over()
            assert ran == ["One"]
            assert (await stranger.list_tasks()).total_size == 0
        async with App(working("One"), **late) as again, dragoman.connect(again) as same, asyncio.timeout(5):
            done = await same.wait(task)

    assert text_of(done.task) == "by One"
    assert ran == ["One", "One"]


async def test_an_agent_that_is_renamed_keeps_its_tasks_by_its_namespace(tmp_path: Any) -> None:
    store = f"sqlite:///{tmp_path}/tasks.db"
    async with App(agent_called("Old"), store=store, limits=QUICK) as app, dragoman.connect(app) as client:
        task = await client.send("hi")

    async with (
        App(agent_called("New"), store=store, namespace="Old", limits=QUICK) as app,
        dragoman.connect(app) as client,
    ):
        assert text_of(await client.get_task(task.id)) == "Old for ''"  # type: ignore[union-attr]
