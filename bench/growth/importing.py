"""What importing costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.growth.curve import Curve, Sizes


def measure_imports(sizes: Sizes, sdk: Path | None) -> Curve:
    """Import the core, and the client of a2a-sdk, each in fresh interpreters; the best time counts."""
    ours, theirs = sys.executable, str(sdk)
    rows = [["dragoman", "import dragoman", _cost(ours, "import dragoman", sizes.imports)]]
    if sdk is not None:
        rows.append(["a2a-sdk", "import a2a.client", _cost(theirs, "import a2a.client", sizes.imports)])
        rows.append(["a2a-sdk", "its server", _cost(theirs, "import a2a.server.routes", sizes.imports)])
    return Curve("Import", "under 0.3 s", ("package", "what", "s of CPU"), rows)


def _cost(python: str, program: str, times: int) -> str:
    tell = "import time; print(time.process_time())"
    with_it = min(_run(python, f"{program}; {tell}") for _ in range(times))
    return f"{with_it - min(_run(python, tell) for _ in range(times)):.2f}"


def _run(python: str, program: str) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)
