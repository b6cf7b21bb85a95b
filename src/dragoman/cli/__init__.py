"""The command line. It needs the extra ``cli``."""

from __future__ import annotations

import sys

from dragoman.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command line and end the process with its exit status."""
    try:
        import click  # noqa: F401
    except ImportError:
        sys.exit(f"dragoman: {MissingExtraError('the command line', 'cli')}")
    from dragoman.cli.main import run_program

    sys.exit(run_program(sys.argv[1:]))
