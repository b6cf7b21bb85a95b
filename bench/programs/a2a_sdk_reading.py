"""A client of a2a-sdk that reads streams: ``python a2a_sdk_reading.py raw|client PORT TIMES``.

Runs under the SDK's own interpreter. ``bench/reading.py`` does the same with dragoman.
"""

from __future__ import annotations

import sys
import time

import httpx
import uvloop
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers import new_text_message
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Role, SendMessageRequest
from google.protobuf.json_format import MessageToDict


def request() -> SendMessageRequest:
    return SendMessageRequest(message=new_text_message("Hello there", role=Role.ROLE_USER))


async def read_raw(url: str, tell) -> None:
    async with httpx.AsyncClient() as http:

        async def read() -> int:
            events = 0
            asked = http.stream("POST", f"{url}/message:stream", json=MessageToDict(request()))
            async with asked as response:
                async for piece in response.aiter_bytes():
                    events += piece.count(b"\n\n")
            return events

        await tell(read)


async def read_client(url: str, tell) -> None:
    card = AgentCard(
        supported_interfaces=[AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=True),
    )
    client = ClientFactory(ClientConfig(supported_protocol_bindings=["HTTP+JSON"])).create(card)

    async def read() -> int:
        events = 0
        async for _ in client.send_message(request()):
            events += 1
        return events

    await tell(read)
    await client.close()


READERS = {"raw": read_raw, "client": read_client}


async def main(kind: str, port: str, times: int) -> None:
    async def tell(read) -> None:
        await read()
        began = time.process_time()
        events = sum([await read() for _ in range(times)])
        print(events, time.process_time() - began)

    await READERS[kind](f"http://127.0.0.1:{port}", tell)


uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
