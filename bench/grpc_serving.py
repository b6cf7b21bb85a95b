"""Runs one gRPC server as a process of its own, and prints its port.

``python -m bench.grpc_serving dragoman AGENT``: an agent of ``bench/agents.py``, on a store in memory.
``python -m bench.grpc_serving bare FILE SECONDS``: a bare ``grpc.aio`` servicer that reads the request as a message,
and sends the messages in a file (JSON, base64), all of them for a stream, with pauses between them.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any

import grpc
import msgspec
import uvloop
from grpc import aio

from bench.agents import make_app
from dragoman.bindings.grpc.schema import PACKAGE, SERVICE, message_class
from dragoman.bindings.grpc.settings import GrpcServerSettings
from dragoman.server.grpc_serving import start_grpc


async def serve(kind: str, name: str, pause: str = "") -> None:
    """Serve until killed."""
    if kind == "bare":
        server = aio.server()
        server.add_generic_rpc_handlers((_bare(_messages(name), float(pause)),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
    else:
        app = make_app(name, None)
        await app.start()
        served = await start_grpc(app, GrpcServerSettings(port=0))
        port = served.port
    print(port, flush=True)
    gc.freeze()
    await asyncio.Event().wait()


def _messages(file: str) -> list[bytes]:
    return msgspec.json.decode(Path(file).read_bytes(), type=list[bytes])


def _bare(answers: list[bytes], pause: float) -> Any:
    """What somebody writes by hand with generated messages: the library reads requests and writes answers."""
    request, response, event = (
        message_class(f"{PACKAGE}.{name}") for name in ("SendMessageRequest", "SendMessageResponse", "StreamResponse")
    )

    async def call(message: Any, context: Any) -> Any:
        return response.FromString(answers[0])

    async def stream(message: Any, context: Any) -> Any:
        for answer in answers:
            yield event.FromString(answer)
            if pause:
                await asyncio.sleep(pause)

    handlers = {
        "SendMessage": grpc.unary_unary_rpc_method_handler(call, request.FromString, response.SerializeToString),
        "SendStreamingMessage": grpc.unary_stream_rpc_method_handler(
            stream, request.FromString, event.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


if __name__ == "__main__":
    uvloop.run(serve(*sys.argv[1:]))
