"""The commands: their words, and where each is defined. A command's module is imported when it is used.

Spec: P-01, P-02, A2ACLI_CLI_001.
"""

from __future__ import annotations

import importlib

import click
import msgspec

from dragoman.cli.asked import VersionAsked
from dragoman.cli.options import CONTEXT, Leaf, global_options, records, write_options


class Entry(msgspec.Struct, frozen=True):
    """A command: its words, the module and name of its Leaf, the tier of the specification (0: our own), a summary."""

    words: tuple[str, ...]
    place: str
    tier: int
    summary: str

    @property
    def path(self) -> str:
        """The words."""
        return " ".join(self.words)


def _entry(words: str, place: str, tier: int, summary: str) -> Entry:
    return Entry(tuple(words.split()), f"dragoman.cli.{place}", tier, summary)


COMMANDS = (
    _entry("card get", "card:GET", 1, "Fetch an agent's card and show it."),
    _entry("card lint", "card_lint:LINT", 0, "Look for what is wrong with a card, and what is unwise."),
    _entry("card verify", "card_verify:VERIFY", 0, "Verify the signatures of a card."),
    _entry("card sign", "card_sign:SIGN", 0, "Sign a card in a file."),
    _entry("card key new", "card_key:NEW", 0, "Make a key pair to sign cards with."),
    _entry("card key jwks", "card_key:JWKS", 0, "Print the public JWK set of keys."),
    _entry("card new", "card_new:NEW", 0, "Print a card to begin with."),
    _entry("card diff", "card_diff:DIFF", 0, "Show how two cards differ."),
    _entry("send", "send:SEND", 1, "Send a message: begin or continue an interaction."),
    _entry("task get", "task:GET", 1, "Show a task, or wait for it."),
    _entry("task cancel", "task:CANCEL", 1, "Cancel a task."),
    _entry("task list", "task:LIST", 2, "List tasks."),
    _entry("task subscribe", "task:SUBSCRIBE", 2, "Follow a running task."),
    _entry("task download", "download:DOWNLOAD", 2, "Save the artifacts of a task."),
    _entry("auth login", "auth:LOGIN", 2, "Log in to an agent, and keep the token."),
    _entry("auth status", "auth:STATUS", 0, "Show the logins that are kept."),
    _entry("auth logout", "auth:LOGOUT", 0, "Forget logins."),
    _entry("task push-config create", "push_config:CREATE", 2, "Have a webhook told about a task."),
    _entry("task push-config get", "push_config:GET", 2, "Show what a webhook of a task is told by."),
    _entry("task push-config list", "push_config:LIST", 2, "List the webhooks of a task."),
    _entry("task push-config delete", "push_config:DELETE", 2, "Tell a webhook no more."),
    _entry("config show", "configure:SHOW", 2, "Show the settings in effect and where they come from."),
    _entry("completion", "completion:COMPLETION", 2, "Print a script for the completion of a shell."),
    _entry("webhook listen", "webhook:LISTEN", 3, "Take push notifications, and print them."),
    _entry("run", "run:RUN", 0, "Serve your own agent, MODULE:AGENT."),
    _entry("agentcore dev", "agentcore:DEV", 0, "Run an agent behind a stand-in for AgentCore."),
    _entry("agentcore init", "agentcore:INIT", 0, "Write what makes a container of an agent for AgentCore."),
    _entry("server", "server:SERVER", 3, "Serve an echo agent, or a program as an agent."),
    _entry("demo-server", "server:DEMO_SERVER", 3, "The same as server --echo."),
    _entry("help", "helping:HELP", 1, "Show how the program, or one of its commands, is used."),
)
GROUPS = {
    "card": "Agent cards.",
    "card key": "Keys that cards are signed with.",
    "task": "Tasks of an agent.",
    "task push-config": "Webhooks of a task, which the agent tells what comes of it.",
    "webhook": "Push notifications of agents.",
    "auth": "Logins to agents.",
    "config": "Settings.",
    "agentcore": "Amazon Bedrock AgentCore: rehearse a deployment, and prepare one.",
}


def load(entry: Entry) -> Leaf:
    """The command of an entry."""
    module, _, name = entry.place.partition(":")
    leaf = getattr(importlib.import_module(module), name)
    assert isinstance(leaf, Leaf)
    return leaf


class Branch(click.Group):
    """The root, or the commands on one resource."""

    def __init__(self, words: tuple[str, ...], help: str) -> None:
        self.words = words
        super().__init__(
            words[-1] if words else "dragoman",
            params=global_options(),
            help=help,
            no_args_is_help=False,
            invoke_without_command=not words,
            callback=None if words else _alone,
            context_settings=CONTEXT,
            subcommand_metavar="COMMAND [OPTIONS] [ARGUMENTS]",
        )

    def entries(self) -> list[Entry]:
        """The commands below."""
        return [entry for entry in COMMANDS if entry.words[: len(self.words)] == self.words]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The next words that there are."""
        depth = len(self.words)
        return list(dict.fromkeys(entry.words[depth] for entry in self.entries()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command or group behind the next word."""
        words = (*self.words, cmd_name)
        for entry in self.entries():
            if entry.words == words:
                return load(entry)
        group = GROUPS.get(" ".join(words))
        return Branch(words, group) if group is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the next word means; an unknown one is told the known ones."""
        name, found, rest = args[0], self.get_command(ctx, args[0]), args[1:]
        if found is None and not ctx.resilient_parsing:
            known = ", ".join(self.list_commands(ctx))
            ctx.fail(f"there is no command {' '.join([*self.words, name])!r}; there are: {known}")
        return name, found, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All commands with their words, on one screen."""
        depth = len(self.words)
        rows = [(" ".join(entry.words[depth:]), entry.summary) for entry in self.entries()]
        write_options(formatter, "Commands", rows)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first, then the options that all of them take."""
        self.format_commands(ctx, formatter)
        write_options(formatter, "Global options, before or after the command", records(ctx, self.params))


@click.pass_context
def _alone(ctx: click.Context) -> None:
    """No command at all. ``dragoman -v`` shows the version, as ``-v`` once did in the specification."""
    if ctx.invoked_subcommand is None:
        if ctx.obj.get("verbose"):
            raise VersionAsked
        ctx.fail("a command is missing")


def root() -> Branch:
    """The whole program."""
    return Branch((), "Talk to agents that speak A2A, the Agent2Agent protocol, and serve them.")
