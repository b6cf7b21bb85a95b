"""Tenants: an opaque value that scopes and routes. Spec: §8.3.2, topic multi-tenancy."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent
from tests.client.words import card, connect_to, task
from tests.conformance.wire import SPOKEN, said, served
from tests.http.peer import as_json, peer, result, stream

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
agent = Agent("Tenants", description="Says for which tenant it works.")


@agent.task
async def work(ctx):  # type: ignore[no-untyped-def]
    if ctx.text == "ask":
        await ctx.ask("and?")
    return f"for {ctx.tenant!r}"


@BOTH
@pytest.mark.req("TEN-01", "TEN-03", "TEN-06", "AUTH-08", "HTTP-12", "AMB-89")
async def test_a_tenants_tasks_are_its_own_in_every_operation(spoken: str) -> None:
    async with served(agent) as wire:

        async def call(operation: str, tenant: str, **request: Any) -> Any:
            return await wire.call(spoken, operation, {**request, **({"tenant": tenant} if tenant else {})})

        tasks = {
            tenant: (await call("SendMessage", tenant, **said("ask"))).result["task"] for tenant in ("", "acme", "Acme")
        }
        for tenant, task in tasks.items():
            assert (await call("GetTask", tenant, id=task["id"])).result["id"] == task["id"]
            listed = (await call("ListTasks", tenant)).result
            assert ([t["id"] for t in listed["tasks"]], listed["totalSize"]) == ([task["id"]], 1)
            for other in set(tasks) - {tenant}:
                for operation, request in (
                    ("GetTask", {"id": task["id"]}),
                    ("CancelTask", {"id": task["id"]}),
                    ("SubscribeToTask", {"id": task["id"]}),
                    ("SendMessage", said("more", taskId=task["id"])),
                    ("SendStreamingMessage", said("more", taskId=task["id"])),
                ):
                    assert (await call(operation, other, **request)).reason == "TASK_NOT_FOUND"
        done = {
            tenant: (await call("SendMessage", tenant, **said("more", taskId=task["id"]))).result["task"]
            for tenant, task in tasks.items()
        }

    assert [task["artifacts"][0]["parts"][0]["text"] for task in done.values()] == [
        "for ''",
        "for 'acme'",
        "for 'Acme'",
    ]


@pytest.mark.req("TEN-01", "TEN-06", "AMB-89")
async def test_a_tenant_is_opaque_and_the_same_by_path_query_and_body() -> None:
    async with served(agent) as wire:
        for tenant, segment in (("acme", "acme"), ("a b/ü:%", "a%20b%2F%C3%BC%3A%25"), ("7", "7"), ("{}", "%7B%7D")):
            by_path = await wire.rest("POST", f"/{segment}/message:send", said("ask"))
            id = by_path.result["task"]["id"]
            answers = [
                await wire.rest("GET", f"/{segment}/tasks/{id}"),
                await wire.rest("GET", f"/tasks/{id}?tenant={segment}"),
                await wire.rpc("GetTask", {"id": id, "tenant": tenant}),
                await wire.rest("POST", f"/tasks/{id}:cancel", {"tenant": tenant}),
            ]
            assert {told.result["id"] for told in answers} == {id}, tenant


@pytest.mark.req("AMB-89", "HTTP-12")
async def test_literal_routes_win_over_a_tenant_of_that_name() -> None:
    async with served(agent) as wire:
        tasks_tenant = await wire.rest("GET", "/tasks/tasks")
        empty = await wire.rest("GET", "//tasks")

    assert (tasks_tenant.reason, tasks_tenant.metadata["taskId"]) == ("TASK_NOT_FOUND", "tasks")
    assert empty.status == 404


# The client.


@BOTH
@pytest.mark.req("TEN-02", "CARD-10", "AMB-89", "JRPC-04", "HTTP-03")
async def test_the_client_repeats_the_interfaces_tenant_in_every_request_and_leaves_it_out_where_there_is_none(
    spoken: str,
) -> None:
    async with peer() as server:
        for root in ("", "/acme%2Feu"):
            done, page = task("COMPLETED"), {"tasks": [], "nextPageToken": "", "pageSize": 1, "totalSize": 0}
            server.on("POST", f"{root}/message:send", as_json({"task": done}))
            server.on("GET", f"{root}/tasks/t1", as_json(done))
            server.on("GET", f"{root}/tasks", as_json(page))
            server.on("POST", f"{root}/tasks/t1:cancel", as_json(done))
            server.on("POST", f"{root}/message:stream", stream({"task": done}, rpc=False))
            rpc = [result({"task": done}), result(done), result(page), result(done), stream({"task": done})]
            server.on("POST", "/", *rpc)
            entry = {"url": server.url, "protocolBinding": spoken, "protocolVersion": "1.0"}
            entry |= {"tenant": "acme/eu"} if root else {}
            async with connect_to(server, card=card(server.url, supportedInterfaces=[entry])) as client:
                await client.send("hi")
                await client.get_task("t1")
                await client.list_tasks()
                await client.cancel("t1")
                assert [event async for event in client.stream("hi")]
            server._routes.pop(("POST", "/"))

    without, within = server.received[:5], server.received[5:]
    assert not any(b"tenant" in request.body or "acme" in request.target for request in without)
    if spoken == "JSONRPC":
        assert [request.json["params"]["tenant"] for request in within] == ["acme/eu"] * 5
    else:
        assert all(request.target.startswith("/acme%2Feu/") for request in within)
        assert [request.json["tenant"] for request in within if request.body] == ["acme/eu"] * 3
