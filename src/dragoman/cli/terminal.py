"""Whether there is somebody to look."""

from __future__ import annotations

import os
import sys


def has_terminal() -> bool:
    """Whether standard error is a terminal that can take a line back."""
    return os.environ.get("TERM", "dumb") != "dumb" and sys.stderr.isatty()
