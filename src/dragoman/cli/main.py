"""``dragoman``: the entry point. The command line needs the extra ``cli``."""

from __future__ import annotations

import sys

from dragoman.errors import DragomanError, MissingExtraError


def main() -> None:
    """Run the command line; a fault of set-up is one line on standard error and exit code 2."""
    try:
        import typer
    except ImportError:
        sys.exit(f"dragoman: {MissingExtraError('the command line', 'cli')}")
    from dragoman.cli.run import run

    app = typer.Typer(
        name="dragoman", help="Agents that speak A2A.", no_args_is_help=True, pretty_exceptions_enable=False
    )
    app.callback()(_root)
    app.command("run")(run)
    try:
        app()
    except DragomanError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        sys.exit(2)


def _root() -> None:
    """Agents that speak A2A, the Agent2Agent protocol."""
