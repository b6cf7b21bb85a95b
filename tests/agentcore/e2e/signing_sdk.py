"""A client of the official SDK, of either generation, that signs its requests by hand: without botocore, without us.

    python signing_sdk.py URL SESSION KEY-ID SECRET CSV-FILE

Runs under the SDK's own interpreter. Sends the file as a call and as a stream; prints what it saw as one JSON object.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import uuid
from collections.abc import Generator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from a2a import types
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory

GENERATION = "0.3" if version("a2a-sdk").startswith("0.") else "1.0"
SESSION_ID = "x-amzn-bedrock-agentcore-runtime-session-id"


class Signing(httpx.Auth):
    """Signature version 4, of the body and of four headers."""

    requires_request_body = True

    def __init__(self, session: str, key_id: str, secret: str) -> None:
        self._session, self._key_id, self._secret = session, key_id, secret

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign, last of all."""
        date = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": request.headers["host"], "x-amz-date": date, SESSION_ID: self._session}
        if "content-type" in request.headers:
            headers["content-type"] = request.headers["content-type"]
        request.headers.update(headers)
        path, _, query = request.url.raw_path.decode().partition("?")
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        digest = hashlib.sha256(request.content).hexdigest()
        canonical = "\n".join([request.method, quote(path, safe="/-_.~"), query, lines, names, digest])
        scope = f"{date[:8]}/eu-west-1/bedrock-agentcore/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{self._secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        request.headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        yield request


def told(value: Any) -> Any:
    """An answer of the SDK as JSON."""
    if GENERATION == "1.0":
        from google.protobuf.json_format import MessageToDict

        return MessageToDict(value)
    task, update = value if isinstance(value, tuple) else (value, None)
    return (update or task).model_dump(mode="json", by_alias=True, exclude_none=True)


async def send(client: Client, content: bytes) -> list[Any]:
    """What comes of a file."""
    raw = base64.b64encode(content).decode()
    message: dict[str, Any] = {"messageId": str(uuid.uuid4())}
    if GENERATION == "1.0":
        from google.protobuf.json_format import ParseDict

        message |= {"role": "ROLE_USER", "parts": [{"raw": raw, "filename": "gauges.csv", "mediaType": "text/csv"}]}
        request: Any = ParseDict({"message": message}, types.SendMessageRequest())
    else:
        file = {"bytes": raw, "name": "gauges.csv", "mimeType": "text/csv"}
        message |= {"role": "user", "parts": [{"kind": "file", "file": file}]}
        request = types.Message.model_validate(message)
    return [told(answer) async for answer in client.send_message(request)]


async def main(url: str, session: str, key_id: str, secret: str, content: bytes) -> None:
    """Read the card, make two calls."""
    async with httpx.AsyncClient(auth=Signing(session, key_id, secret), timeout=60, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        saw: dict[str, Any] = {"generation": GENERATION, "card": told(card)}
        for kind, streaming in (("call", False), ("stream", True)):
            client = ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)
            saw[kind] = await send(client, content)
    print(json.dumps(saw))


asyncio.run(main(*sys.argv[1:5], Path(sys.argv[5]).read_bytes()))
