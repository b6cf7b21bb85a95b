"""gRPC beside HTTP: one process, one runtime, one card; health, reflection, and the end in order."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc import aio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import dragoman
from dragoman import App, TaskState
from dragoman.cli.run import plaintext
from dragoman.errors import ConfigurationError
from dragoman.model import AgentInterface
from dragoman.server import GrpcServerSettings, ServerTls
from dragoman.server.grpc_serving import start_grpc
from dragoman.server.serving import listen, serve
from dragoman.testing.serving import serving
from examples.process import DRAGOMAN, AgentProcess
from tests.conformance.raw import eventually
from tests.grpc.agents import make_echo
from tests.grpc.raw import QUICK, Caller, Refused, grpc_served, say

GRPC = GrpcServerSettings(port=0)


@pytest.mark.req("CARD-04", "CARD-06", "AMB-73", "AMB-77", "GRPC-01")
async def test_the_card_names_what_is_served_and_both_servers_share_one_runtime() -> None:
    async with (
        serving(App(make_echo(), limits=QUICK), grpc=GRPC) as url,
        dragoman.connect(url) as over_http,
        dragoman.connect(url, bindings=("GRPC",)) as over_grpc,
    ):
        task = await over_http.send("hello")
        same = await over_grpc.get_task(task.id)

    entries = over_http.card.supported_interfaces
    assert same == task
    assert [(entry.protocol_version, entry.protocol_binding) for entry in entries] == [
        *(("1.0", binding) for binding in ("JSONRPC", "HTTP+JSON", "GRPC")),
        *(("0.3", binding) for binding in ("JSONRPC", "HTTP+JSON", "GRPC")),
    ]
    assert over_http.interface.protocol_binding == "JSONRPC"
    assert re.fullmatch(r"127\.0\.0\.1:\d+", entries[2].url)
    assert entries[5].url == entries[2].url


@pytest.mark.req("CARD-06", "AMB-77")
async def test_the_address_on_the_card_follows_the_public_url_or_is_set() -> None:
    async with grpc_served(make_echo(), GRPC, public_url="https://agent.example/a2a") as server:
        assert server.interface.url == f"agent.example:{server.port}"
    settings = GrpcServerSettings(port=0, public_address="rpc.example:443")
    async with grpc_served(make_echo(), settings, public_url="https://agent.example") as server:
        assert server.interface.url == "rpc.example:443"


async def test_a_server_that_has_ended_is_not_on_the_card_any_more() -> None:
    app = App(make_echo(), limits=QUICK)
    async with app:
        server = await start_grpc(app, GRPC)
        there = len(app.card("http://x.example").supported_interfaces)
        await server.stop(0)

        assert (there, len(app.card("http://x.example").supported_interfaces)) == (6, 4)


async def test_a_port_that_is_taken_is_a_configuration_error_and_the_app_is_stopped() -> None:
    async with grpc_served(make_echo()) as server:
        app = App(make_echo(), limits=QUICK)
        taken = GrpcServerSettings(port=server.port)
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1:{server.port} for gRPC"):
            await serve(app, listen("127.0.0.1", 0), grpc=taken, handle_signals=False)

        assert app.runtime.is_stopping


@pytest.mark.parametrize(
    "settings",
    [
        {"port": -1},
        {"port": 65536},
        {"max_message_bytes": 0},
        {"keepalive": 0},
        {"public_address": "https://a.example/path"},
    ],
)
def test_settings_out_of_range_are_configuration_errors(settings: Any) -> None:
    with pytest.raises(ConfigurationError):
        GrpcServerSettings(**settings)


# Health and reflection.


async def health(channel: aio.Channel, service: str = "") -> Any:
    method: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
    request = health_pb2.HealthCheckRequest(service=service).SerializeToString()
    return health_pb2.HealthCheckResponse.FromString(await method(request, timeout=5)).status


SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.mark.req("ERR-11")
async def test_the_health_service_says_that_it_serves_until_the_end_begins() -> None:
    app = App(make_echo(), limits=QUICK)
    async with grpc_served(app) as server, aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        before = [await health(channel, name) for name in ("", "lf.a2a.v1.A2AService")]
        app.begin_stop()
        server.begin_stop()
        await eventually(lambda: is_gone(channel))
        with pytest.raises(Refused) as refused:
            await Caller(channel).call("SendMessage", say("wait"))

    assert before == [SERVING, SERVING]
    assert refused.value.code == "UNAVAILABLE"


async def is_gone(channel: aio.Channel) -> bool:
    return bool(await health(channel) == NOT_SERVING)


@pytest.mark.req("GRPC-01")
async def test_reflection_tells_of_the_services_and_the_proto() -> None:
    async with grpc_served(make_echo()) as server, aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = (
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="lf.a2a.v1.A2AService"),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="grpc.health.v1.Health"),
        )
        names, proto, health_proto = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]

    assert {service.name for service in names.list_services_response.service} == {
        "lf.a2a.v1.A2AService",
        "a2a.v1.A2AService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    files = [
        descriptor_pb2.FileDescriptorProto.FromString(data)
        for data in proto.file_descriptor_response.file_descriptor_proto
    ]
    assert files[0].service[0].method[0].name == "SendMessage"
    assert health_proto.file_descriptor_response.file_descriptor_proto


async def test_health_and_reflection_can_be_left_out() -> None:
    settings = GrpcServerSettings(port=0, health=False, reflection=False)
    async with (
        grpc_served(make_echo(), settings) as server,
        aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        with pytest.raises(aio.AioRpcError) as refused:
            await health(channel)

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


# The end.


@pytest.mark.req("ERR-11", "STRM-04", "AMB-10")
async def test_at_the_end_running_work_has_its_grace_and_streams_say_why_they_end() -> None:
    agent = make_echo()
    app = App(agent, limits=dragoman.Limits(shutdown_grace=5, lease=2))
    await app.start()
    server = await start_grpc(app, GRPC)
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        caller = Caller(channel)
        waiting = asyncio.create_task(caller.call("SendMessage", say("wait")))
        asked = (await caller.call("SendMessage", say("ask")))["task"]["id"]
        idle = caller.stream("SubscribeToTask", {"id": asked})
        await idle.read()
        await eventually(lambda: _working(caller))
        app.begin_stop()
        server.begin_stop()
        with pytest.raises(aio.AioRpcError) as ended:
            await idle.read()
        leaving = asyncio.gather(server.stop(5), app.stop())
        agent.go.set()  # type: ignore[attr-defined]
        done = await waiting
        await leaving

    assert done["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "shutting down" in (ended.value.details() or "")


async def _working(caller: Caller) -> bool:
    return bool((await caller.call("ListTasks", {"status": "TASK_STATE_WORKING"})).get("tasks"))


@pytest.mark.req("STRM-04")
async def test_work_that_outlasts_its_grace_is_recorded_and_its_stream_says_so() -> None:
    async with serving(App(make_echo(), limits=QUICK), grpc=GRPC) as url:
        connection = dragoman.connect(url, bindings=("GRPC",))
        stream = (await connection.open()).stream("wait")
        await anext(stream)

    *_, last = [event async for event in stream]
    await connection.aclose()
    assert last.status.state is TaskState.FAILED


ECHO = """
from dragoman import Agent

agent = Agent("Echo", description="Says it again.")


@agent.task
async def echo(ctx):
    if ctx.text == "wait":
        import asyncio
        await asyncio.sleep(0.5)
    return f"You said: {ctx.text}"
"""


@pytest.mark.req("CARD-04", "GRPC-01", "ERR-11")
async def test_dragoman_run_serves_grpc_too_and_ends_in_order(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    with AgentProcess.serving("echo:agent", "--grpc-port", "0", cwd=tmp_path) as process:
        async with dragoman.connect(process.url, bindings=("GRPC",)) as client:
            first = await client.send("hello")
            address = client.interface.url
            waiting = asyncio.create_task(client.send("wait"))
            events = client.stream("wait")
            await anext(events)
            await eventually(lambda: both_work(client))
            ending = asyncio.create_task(asyncio.to_thread(process.stop))
            kinds = [type(event).__name__ async for event in events]
            done = await waiting
            await ending

    assert first.artifacts[0].parts[0].text == "You said: hello"
    assert f"  grpc   {address}\n" in process.output
    assert kinds[-1] == "TaskStatusUpdateEvent"
    assert done.artifacts[0].parts[0].text == "You said: wait"


async def both_work(client: dragoman.Client) -> bool:
    return (await client.list_tasks(status=TaskState.WORKING)).total_size == 2


@pytest.mark.req("AMB-77")
@pytest.mark.parametrize(
    ("address", "tls", "warns"),
    [
        ("agent.example:50051", None, True),
        ("http://agent.example:50051", None, False),
        ("127.0.0.1:50051", None, False),
        ("agent.example:50051", ServerTls(certificate=b"", key=b""), False),
    ],
)
def test_a_public_server_without_tls_is_told_what_clients_will_do(
    address: str, tls: ServerTls | None, warns: bool
) -> None:
    card = App(make_echo()).card("https://agent.example")
    card.supported_interfaces.append(AgentInterface(url=address, protocol_binding="GRPC", protocol_version="1.0"))

    note = plaintext(card, GrpcServerSettings(tls=tls))

    assert ("clients use TLS" in note) is warns
    assert plaintext(card, None) == ""


@pytest.mark.parametrize(
    "options",
    [
        ("--grpc-cert", "x.pem"),
        ("--grpc-port", "0", "--grpc-cert", "x.pem"),
        ("--grpc-port", "0", "--grpc-client-ca", "x"),
    ],
)
def test_options_that_need_others_are_usage_errors(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    done = subprocess.run(
        [DRAGOMAN, "run", "echo:agent", "--port", "0", *options], cwd=tmp_path, capture_output=True, timeout=60
    )

    assert done.returncode == 2
    assert b"--grpc-" in done.stderr
