"""Where 0.3 is served from: the command line, a proxy, a mount."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from dragoman import App, ProxyApp
from examples.process import DRAGOMAN, AgentProcess
from tests.compat.server.speaking import ECHO, Old, checked_body, envelope, serving, told, told_in_proto
from tests.compat.server.test_streams import check_ending
from tests.conformance.quick_server import quick_serving
from tests.conformance.wire import QUICK, asgi_served

pytestmark = pytest.mark.req("V03-01")

CARD = "/.well-known/agent.json"


def sent(url: str) -> Any:
    return httpx2.post(url, content=envelope("message/send", told()), timeout=5).json()


@pytest.mark.req("V03-06")
def test_a_command_serves_both_versions_unless_it_is_told_otherwise() -> None:
    with AgentProcess([DRAGOMAN, "server", "--echo", "--quiet"]) as process:
        both = (sent(process.url), httpx2.get(process.url + CARD).json())
    with AgentProcess([DRAGOMAN, "server", "--echo", "--quiet", "--versions", "1.0"]) as process:
        alone = (sent(process.url), httpx2.get(process.url + CARD).status_code)
    with AgentProcess(
        [DRAGOMAN, "run", "examples.echo.agent:agent", "--port", "0"], environment={"DRAGOMAN_VERSIONS": "1.0"}
    ) as process:
        by_environment = sent(process.url)

    assert both[0]["result"]["status"]["state"] == "completed"
    assert both[1]["protocolVersion"] == "0.3.0"
    assert alone[0]["error"]["code"] == by_environment["error"]["code"] == -32009
    assert alone[1] == 404


@pytest.mark.parametrize("versions", ["0.3", "1.0,2.0", "latest", ""])
def test_versions_that_cannot_be_are_refused_by_a_command(versions: str) -> None:
    done = subprocess.run(
        [DRAGOMAN, "server", "--echo", "--port", "0", "--versions", versions],
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert done.returncode == 2
    assert "--versions" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.req("V03-04")
async def test_a_proxy_serves_0_3_in_front_of_an_agent_of_1_0() -> None:
    async with quick_serving(App(ECHO, limits=QUICK, versions=("1.0",))) as upstream:
        proxy = ProxyApp(upstream, shutdown_grace=0.1)
        async with quick_serving(proxy) as url, asgi_served(proxy) as wire:
            old = Old(wire)
            task = await old.result("message/send", told())
            events = await old.rpc_events("message/stream", told("!stream 3 0"))
            over = await old.rpc_events("tasks/resubscribe", {"id": task["id"]})
            missing = await old.rest("GET", "/tasks/nope")
            reserved = await wire.rest("GET", "/v1/tasks")
            card = (await wire.ask("GET", CARD, None, {})).json

    assert url
    assert task["status"]["state"] == "completed"
    assert check_ending(events)[-1][1] == "completed"
    assert [event["kind"] for event in over] == ["task"]
    checked_body(missing, 404, -32001, "TaskNotFoundError")
    assert reserved.fields == ["tenant"]
    assert (card["protocolVersion"], card["preferredTransport"]) == ("0.3.0", "JSONRPC")


async def test_below_a_mount_everything_is_where_the_card_says() -> None:
    app = App(ECHO, limits=QUICK)
    async with asgi_served(Starlette(routes=[Mount("/agents/echo", app)])) as wire:
        card = (await wire.ask("GET", "/agents/echo" + CARD, None, {})).json
        by_rpc = await wire.http.post(card["url"], content=envelope("message/send", told()))
        rest = next(entry["url"] for entry in card["additionalInterfaces"] if entry["transport"] == "HTTP+JSON")
        by_rest = await wire.http.post(
            f"{rest}/v1/message:send", content=json.dumps(told_in_proto()), headers={"Content-Type": "application/json"}
        )
        await app.stop()

    assert by_rpc.json()["result"]["kind"] == "task"
    assert by_rest.json()["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_what_is_too_large_is_refused_in_the_form_of_0_3() -> None:
    async with serving(max_body_bytes=1000) as old:
        rpc = await old.rpc("message/send", told("x" * 2000))
        rest = await old.rest("POST", "/message:send", told_in_proto("x" * 2000))

    assert (rpc.status, rpc.error["code"]) == (413, -32600)
    assert (rest.status, rest.json["code"]) == (413, -32600)


async def test_while_the_server_stops_callers_are_told_to_come_back() -> None:
    app = App(ECHO, limits=QUICK)
    async with serving(app) as old:
        app.begin_stop()
        rpc = await old.rpc("message/send", told())
        rest = await old.rest("POST", "/message:send", told_in_proto())

    for found in (rpc, rest):
        assert (found.status, found.headers["retry-after"]) == (503, "5")
    assert rest.json["code"] == rpc.error["code"] == -32603
