"""The bytes of the requests."""

from __future__ import annotations

import msgspec

METHODS = {"send": "SendMessage", "stream": "SendStreamingMessage", "get": "GetTask"}
PATHS = {"send": "/message:send", "stream": "/message:stream"}
TEXT = "Hello there"


def message(text: str = TEXT) -> dict[str, object]:
    """The parameters of a send."""
    return {"message": {"messageId": "m" * 32, "role": "ROLE_USER", "parts": [{"text": text}]}}


def request_for(kind: str, binding: str, task_id: str = "", text: str = TEXT) -> bytes:
    """The request of a case."""
    if kind == "card":
        return http("GET", "/.well-known/agent-card.json")
    params = {"id": task_id} if kind == "get" else message(text)
    if binding == "JSONRPC":
        return http("POST", "/", {"jsonrpc": "2.0", "id": 1, "method": METHODS[kind], "params": params})
    if kind == "get":
        return http("GET", f"/tasks/{task_id}")
    return http("POST", PATHS[kind], params)


def http(method: str, path: str, value: object = None) -> bytes:
    """Head and body."""
    body = b"" if value is None else msgspec.json.encode(value)
    head = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", "a2a-version: 1.0"]
    if body:
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


def body_of(answer: bytes) -> bytes:
    """The body of an answer without chunks."""
    return answer.partition(b"\r\n\r\n")[2]


def sends_of(body: bytes) -> list[bytes]:
    """What an answer in chunks was sent in: the server makes a chunk of each send."""
    pieces, at = [], 0
    while at < len(body):
        end = body.index(b"\r\n", at)
        length = int(body[at:end], 16)
        if length:
            pieces.append(body[end + 2 : end + 2 + length])
        at = end + 4 + length
    return pieces


def unchunked(body: bytes) -> bytes:
    """The body of an answer in chunks."""
    return b"".join(sends_of(body))
