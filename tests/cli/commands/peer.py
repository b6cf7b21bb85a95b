"""An agent that is scripted by a test: it plays what real ones must not, and keeps what it was sent."""

from __future__ import annotations

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

RPC, REST = "JSONRPC", "HTTP+JSON"
_ROUTES = (
    ("POST", r"/message:send", "SendMessage"),
    ("POST", r"/message:stream", "SendStreamingMessage"),
    ("GET", r"/tasks/(?P<id>[^/:]+)", "GetTask"),
    ("GET", r"/tasks", "ListTasks"),
    ("POST", r"/tasks/(?P<id>[^/:]+):cancel", "CancelTask"),
    ("POST", r"/tasks/(?P<id>[^/:]+):subscribe", "SubscribeToTask"),
    ("GET", r"/extendedAgentCard", "GetExtendedAgentCard"),
)


class Seen(NamedTuple):
    """A request: ``operation`` is empty for one of the card. Names of headers are in lower case."""

    operation: str
    params: dict[str, Any]
    headers: dict[str, str]
    query: dict[str, str]
    path: str
    id: Any = None

    @property
    def message(self) -> dict[str, Any]:
        """The message that was sent."""
        return self.params["message"]


class Answer(NamedTuple):
    """An answer as it goes out. ``events`` are sent one by one; ``cut``: the connection breaks behind them."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    events: tuple[bytes, ...] | None = None
    cut: bool = False


Play = Callable[[Seen], Answer]


def task(id: str = "t-1", state: str = "COMPLETED", context: str = "c-1", **more: Any) -> dict[str, Any]:
    """A task as JSON."""
    return {"id": id, "contextId": context, "status": {"state": f"TASK_STATE_{state}"}, **more}


def status(state: str, id: str = "t-1", context: str = "c-1") -> dict[str, Any]:
    """A status update as JSON."""
    return {"statusUpdate": {"taskId": id, "contextId": context, "status": {"state": f"TASK_STATE_{state}"}}}


def result(seen: Seen, value: Any) -> Answer:
    """A result in the form of the binding."""
    body = value if seen.id is None else {"jsonrpc": "2.0", "id": seen.id, "result": value}
    return Answer(body=json.dumps(body).encode())


def events(seen: Seen, *values: Any, cut: bool = False) -> Answer:
    """A stream in the form of the binding."""
    bodies = [result(seen, value).body for value in values]
    frames = tuple(b"data: " + body + b"\n\n" for body in bodies)
    return Answer(content_type="text/event-stream", events=frames, cut=cut)


def refusal(seen: Seen, code: int, reason: str, text: str, http: int = 400) -> Answer:
    """An error of the protocol in the form of the binding."""
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"}
    if seen.id is not None:
        error = {"code": code, "message": text, "data": [info]}
        return Answer(body=json.dumps({"jsonrpc": "2.0", "id": seen.id, "error": error}).encode())
    error = {"code": http, "status": "FAILED_PRECONDITION", "message": text, "details": [info]}
    return Answer(http, json.dumps({"error": error}).encode())


class Peer:
    """The agent. ``card`` may be changed before it is asked for; ``play`` answers everything else."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.play: Play = lambda seen: result(seen, {"task": task()})
        self.url = ""
        self.card: dict[str, Any] = {}
        self.card_answer: Answer | None = None

    def reset(self, **capabilities: bool) -> None:
        """A plain card with both bindings, and nothing seen."""
        self.seen.clear()
        self.card_answer = None
        self.play = lambda seen: result(seen, {"task": task()})
        self.card = {
            "name": "Scripted",
            "description": "Plays what a test wants",
            "version": "1",
            "supportedInterfaces": [self.interface(RPC), self.interface(REST)],
            "capabilities": capabilities,
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "s", "name": "S", "description": "s", "tags": ["s"]}],
        }

    def interface(self, binding: str, **more: Any) -> dict[str, Any]:
        """An interface of this agent."""
        path = {RPC: "/rpc", REST: "/rest"}.get(binding, "/other")
        return {"url": self.url + path, "protocolBinding": binding, "protocolVersion": "1.0", **more}

    @property
    def calls(self) -> list[Seen]:
        """The requests that were not for the card."""
        return [seen for seen in self.seen if seen.operation]

    @property
    def operations(self) -> list[str]:
        """Their operations, in order."""
        return [seen.operation for seen in self.calls]

    def answer(self, seen: Seen) -> Answer:
        """The answer to a request."""
        self.seen.append(seen)
        if seen.operation:
            return self.play(seen)
        if seen.path == "/.well-known/agent-card.json":
            return self.card_answer or Answer(body=json.dumps(self.card).encode())
        return Answer(404, b"{}")


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Peer]:
    """A peer on a free port; over TLS with a context."""
    peer = Peer()

    class Handler(_Handler):
        """Handles requests for this peer."""

        owner = peer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    peer.url = f"{'https' if context else 'http'}://127.0.0.1:{server.server_address[1]}"
    peer.reset()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Peer

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, *_: object) -> None:
        """Silence."""

    def _answer(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        answer = self.owner.answer(_read(method, self.path, dict(self.headers.items()), body))
        self.send_response(answer.status)
        if answer.content_type:
            self.send_header("content-type", answer.content_type)
        if answer.events is None:
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
        else:
            self._stream(answer.events, cut=answer.cut)

    def _stream(self, frames: Iterable[bytes], *, cut: bool) -> None:
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            self.wfile.flush()
        if cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")


def _read(method: str, target: str, headers: dict[str, str], body: bytes) -> Seen:
    parts = urlsplit(target)
    lower = {name.lower(): value for name, value in headers.items()}
    query = dict(parse_qsl(parts.query))
    if parts.path.startswith("/rpc"):
        call = json.loads(body)
        return Seen(call["method"], call.get("params") or {}, lower, query, parts.path, call["id"])
    path = parts.path.removeprefix("/rest")
    for verb, pattern, operation in _ROUTES:
        match = re.fullmatch(r"(?:/(?P<tenant>[^/]+))?" + pattern, path)
        if parts.path.startswith("/rest") and verb == method and match:
            fields = {name: value for name, value in match.groupdict().items() if value}
            return Seen(operation, {**(json.loads(body) if body else {}), **query, **fields}, lower, query, parts.path)
    return Seen("", {}, lower, query, parts.path)
