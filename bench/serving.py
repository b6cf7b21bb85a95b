"""Runs one app as a server process of its own, and prints its port.

``python -m bench.serving dragoman AGENT STORE``: an agent of ``bench/agents.py``. STORE is what ``open_store`` takes,
``memory:N`` for a store in memory that has N tasks from the start, or empty for one that has none.
``python -m bench.serving bare FILE``: the bare app, with the answer in a file.
"""

from __future__ import annotations

import gc
import socket
import sys
from pathlib import Path

import msgspec
import uvicorn
import uvloop

from bench.agents import make_app
from bench.bare import Bare
from bench.processes import allow_many_files
from bench.seeding import seed
from dragoman import MemoryStore
from dragoman.ports.store import TaskStore


async def serve(kind: str, name: str, store: str = "") -> None:
    """Serve until killed."""
    app = _bare(Path(name)) if kind == "bare" else make_app(name, await _store(store))
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(2048)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        ws="none",
        server_header=False,
        http="httptools",
        timeout_keep_alive=300,  # a connection may wait for the slowest of its period
    )
    gc.freeze()  # as run_app does; the bare app and the peer get it too
    await uvicorn.Server(config).serve(sockets=[listening])


async def _store(setting: str) -> TaskStore | str | None:
    if not setting.startswith("memory:"):
        return setting or None
    store = MemoryStore()
    await seed(store, 0, int(setting.partition(":")[2]))
    return store


def _bare(file: Path) -> Bare:
    answer = msgspec.json.decode(file.read_bytes())
    pieces = [piece.encode() for piece in answer["pieces"]]
    return Bare(pieces, answer["type"].encode(), stream=answer["stream"], pause=answer["pause"])


if __name__ == "__main__":
    allow_many_files()
    uvloop.run(serve(*sys.argv[1:]))
