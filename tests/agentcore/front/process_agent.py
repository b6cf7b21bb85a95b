"""A container as a program of its own, on nothing but the standard library: counts what it was told, per process.

Words of a call: ``token`` writes the workload token to the output; ``env`` answers with the environment; ``stubborn``
ignores SIGTERM from then on; ``die`` ends the process; anything else answers with the count.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTED = int(time.time())
calls = 0
stubborn = threading.Event()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({"status": "Healthy", "time_of_last_update": STARTED})

    def do_POST(self) -> None:
        global calls
        calls += 1
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        word = said.get("params", {}).get("word", "")
        if word == "die":
            os._exit(3)
        if word == "stubborn":
            stubborn.set()
        if word == "token":
            print("the token is", self.headers["WorkloadAccessToken"], flush=True)
        result = {"pid": os.getpid(), "calls": calls, "url": os.environ["AGENTCORE_RUNTIME_URL"]}
        self._answer({"jsonrpc": "2.0", "id": said["id"], "result": result})

    def _answer(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def stop(number: int, frame: object) -> None:
    if not stubborn.is_set():
        print("stopped in order", flush=True)
        os._exit(0)


signal.signal(signal.SIGTERM, stop)
if "--fail" in sys.argv:
    print("cannot begin", flush=True)
    sys.exit(7)
ThreadingHTTPServer(("127.0.0.1", int(os.environ["A2A_PORT"])), Handler).serve_forever()
