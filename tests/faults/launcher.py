"""``python launcher.py HANDICAP ARGUMENT …`` runs ``dragoman run ARGUMENT …`` with less than it needs.

``nobody``: as a user who may write nowhere. ``full``: no file may grow, as on a full disk.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import resource
import sys
import tempfile

from dragoman.cli import main
from dragoman.stores.sql import SqlStore

NOBODY = 65534
NEEDED = ("dragoman.cli.run", "dragoman.server.serving", "tests.faults.agents")


async def _import_everything() -> None:
    """Python itself may lie where other users cannot read."""
    for module in NEEDED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore(f"sqlite:///{folder}/warm.db")
        await store.open()
        await store.close()


def _handicap(name: str) -> None:
    if name == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    elif os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)


if __name__ == "__main__":
    import tests.faults.agents  # noqa: F401

    asyncio.run(_import_everything())
    _handicap(sys.argv[1])
    sys.argv[1:] = ["run", *sys.argv[2:]]
    main()
