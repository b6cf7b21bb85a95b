"""Together with other packages in one process, and without the libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.generate.__main__ import PROTO
from tools.generate.proto import compile_descriptors

OTHERS = """
import sys
from pathlib import Path
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# As generated modules do: the same file and names, in the default pool.
import google.api.annotations_pb2, google.api.client_pb2, google.api.field_behavior_pb2
from google.protobuf import empty_pb2, struct_pb2, timestamp_pb2
files = descriptor_pb2.FileDescriptorSet.FromString(Path(sys.argv[1]).read_bytes())
descriptor_pool.Default().AddSerializedFile(files.file[-1].SerializeToString())
found = descriptor_pool.Default().FindMessageTypeByName("lf.a2a.v1.Task")
theirs = message_factory.GetMessageClass(found)
"""
OURS = """
import asyncio
import dragoman
from dragoman import Agent
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving

agent = Agent("Echo", description="Says it again.")

@agent.task
async def echo(ctx):
    return ctx.text

async def talk():
    async with serving(dragoman.App(agent), grpc=GrpcServerSettings(port=0)) as url:
        async with dragoman.connect(url, bindings=("GRPC",)) as client:
            return await client.send("hello")
"""
TALK = """
task = asyncio.run(talk())
print(task.artifacts[0].parts[0].text, theirs(id="t").id)
"""


def run(program: str, *arguments: str, flags: tuple[str, ...] = ("-W", "error")) -> str:
    done = subprocess.run(
        [sys.executable, *flags, "-c", program, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("proto") / "set"
    file.write_bytes(compile_descriptors(PROTO).SerializeToString())
    return file


@pytest.mark.req("B173", "GRPC-01")
@pytest.mark.parametrize("program", [OTHERS + OURS + TALK, OURS + OTHERS + TALK], ids=["others first", "ours first"])
def test_messages_of_the_same_names_in_the_default_pool_are_no_clash_and_nothing_warns(
    program: str, compiled: Path
) -> None:
    assert run(program, str(compiled)) == "hello t\n"


def test_nothing_is_registered_in_the_default_pool() -> None:
    program = """
import dragoman.bindings.grpc.messages, dragoman.bindings.grpc.status, dragoman.compat.v03.grpc.messages
from google.protobuf import descriptor_pool
for name in ("lf.a2a.v1.Task", "a2a.v1.Task", "google.rpc.Status"):
    try:
        descriptor_pool.Default().FindMessageTypeByName(name)
        print("found", name)
    except KeyError:
        pass
"""
    assert run(program) == ""


WITHOUT = """
import asyncio, sys
sys.modules["grpc"] = None
import dragoman, dragoman.cli.main
from dragoman import App
from dragoman.errors import ConnectError, MissingExtraError
from dragoman.model import AgentInterface
from dragoman.server import GrpcServerSettings
from dragoman.testing.serving import serving
sys.meta_path.insert(0, type("Hidden", (), {"find_spec": staticmethod(lambda name, *_: None)}))
import importlib.util
real = importlib.util.find_spec
import dragoman.client.connection as connection
connection.find_spec = lambda name: None if name == "grpc" else real(name)

agent = dragoman.Agent("Echo", description="Says it again.")

@agent.task
async def echo(ctx):
    return ctx.text

async def main():
    try:
        async with serving(App(agent), grpc=GrpcServerSettings(port=0)):
            pass
    except MissingExtraError as error:
        print(error)
    async with serving(App(agent)) as url:
        async with dragoman.connect(url) as client:
            card = client.card
        grpc = AgentInterface(url="a.example:1", protocol_binding="GRPC", protocol_version="1.0")
        card.supported_interfaces.insert(0, grpc)
        async with dragoman.connect(card) as client:
            print((await client.send("hi")).artifacts[0].parts[0].text, client.interface.protocol_binding)
        del card.supported_interfaces[1:]
        try:
            async with dragoman.connect(card):
                pass
        except MissingExtraError as error:
            print(error)

asyncio.run(main())
"""


@pytest.mark.req("B173", "CARD-09")
def test_without_the_extra_everything_else_works_and_what_does_not_names_it() -> None:
    missing, works, only = run(WITHOUT, flags=()).splitlines()

    assert missing == "gRPC needs an extra that is not installed: pip install 'dragoman[grpc]'"
    assert works == "hi JSONRPC"
    assert only.endswith("pip install 'dragoman[grpc]'")
