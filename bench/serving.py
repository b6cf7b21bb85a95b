"""Runs one app as a server process of its own: ``python -m bench.serving KIND NAME STORE``."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import msgspec
import uvicorn
import uvloop

from bench.agents import make_app
from bench.bare import Bare


def main() -> None:
    """Serve until killed; the port is the first line of output."""
    kind, name, store = sys.argv[1:4]
    app = _bare(Path(name)) if kind == "bare" else make_app(name, store or None)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, ws="none", server_header=False, http="httptools")
    uvloop.run(uvicorn.Server(config).serve(sockets=[listening]))


def _bare(file: Path) -> Bare:
    answer = msgspec.json.decode(file.read_bytes())
    pieces = [piece.encode() for piece in answer["pieces"]]
    return Bare(pieces, answer["type"].encode(), stream=answer["stream"])


main()
