"""``dragoman completion``: scripts for shells. Completing makes no request. Spec: A2ACLI_CLI_002."""

from __future__ import annotations

from click.shell_completion import ShellComplete, get_completion_class

from dragoman.cli import values
from dragoman.cli.options import Leaf, Run, argument_of
from dragoman.cli.output import Screen

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_DRAGOMAN_COMPLETE"


def _completion(run: Run, shell: str) -> int:
    from dragoman.cli.tree import root

    kind = get_completion_class(shell)
    assert kind is not None
    # The general form: that of bash runs a bash to look at its version first.
    script = ShellComplete.source(kind(root(), {}, "dragoman", VARIABLE))
    Screen.standard().write(script.rstrip("\n") + "\n")
    return 0


COMPLETION = Leaf(
    "completion",
    _completion,
    "Print a script that completes commands and options in a shell: bash, zsh or fish.",
    [argument_of("shell", "bash|zsh|fish", values.one_of(*SHELLS), SHELLS)],
    calls_agents=False,
    examples=(
        "dragoman completion zsh > ~/.zfunc/_dragoman",
        "dragoman completion bash > ~/.local/share/bash-completion/completions/dragoman",
    ),
)
