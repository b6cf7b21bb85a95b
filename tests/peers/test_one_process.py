"""dragoman and the official SDK, which knows the same messages by the same names, in one process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.grpc.test_packages import OURS, TALK

SOURCE = Path(__file__).parents[2] / "src"
SDK = "import a2a.types.a2a_pb2 as sdk\nimport a2a.client, a2a.server.request_handlers\ntheirs = sdk.Task\n"


@pytest.mark.req("B173", "GRPC-01")
@pytest.mark.parametrize("program", [SDK + OURS + TALK, OURS + SDK + TALK], ids=["theirs first", "ours first"])
def test_both_run_in_one_process_in_either_order(sdk_python: Path, program: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}

    done = subprocess.run([str(sdk_python), "-c", program], env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (0, "hello t\n"), done.stderr
