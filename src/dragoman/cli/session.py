"""What a command works with: its settings, where it writes, what it has learned on the way.

Spec: A2ACLI_AUTH_004, A2ACLI_OUT_001, A2ACLI_TASK_POLL_002.
"""

from __future__ import annotations

import time
from typing import Any

from dragoman.auth.presenting import Presenter
from dragoman.auth.token_store import StoredLogin
from dragoman.cli.config import Configuration, foreign_warnings, unknown_keys
from dragoman.cli.credentials import Attachment, Credentials
from dragoman.cli.failures import UsageError
from dragoman.cli.output import Notes, Output, Screen
from dragoman.cli.redact import Redactor, is_plain_parameter
from dragoman.cli.resume import Words
from dragoman.cli.text import state_name
from dragoman.cli.watching import Watch
from dragoman.client.card_cache import FetchedCard
from dragoman.model import Task


class Session:
    """One run of a command.

    What is learned on the way: ``card_reference`` and ``fetched``, the card that was read; ``words``, how the agent was
    named; ``attached``, the credential that goes with requests, ``login`` a stored one and
    ``presenter`` what shows it; ``task_id`` and ``state`` of the task in work,
    ``named_task`` the one that the user named.
    """

    def __init__(self, configuration: Configuration, screen: Screen, *, stream: bool = False) -> None:
        self.configuration = configuration
        self.redactor = Redactor(*_secrets(configuration))
        self.screen = screen
        self.notes = Notes(screen, self.redactor, debug=configuration["debug"])
        self.output = Output(
            screen, json=configuration["output"] == "json", lines=stream, compact=configuration["compact"]
        )
        self.stream = stream
        self.started = time.monotonic()
        self.words = Words()
        self.attached = Attachment()
        self.login: StoredLogin | None = None
        self.presenter: Presenter | None = None
        self.warned: set[str] = set()
        self.watch: Watch | None = None
        self.card_reference = ""
        self.fetched: FetchedCard | None = None
        self.task_id = ""
        self.named_task = ""
        self.state = ""
        self._tell_of_configuration()

    def __getitem__(self, key: str) -> Any:
        """The value of a setting."""
        return self.configuration[key]

    @property
    def verbose(self) -> bool:
        """Whether more is wanted."""
        return bool(self["verbose"])

    def reference(self, given: str | None = None) -> str:
        """The card reference in effect, empty for an endpoint. Raises UsageError."""
        card, endpoint = self.configuration.find("agent_card"), self.configuration.find("endpoint")
        if given and card.source == "flag" and card.value != given:
            raise UsageError(f"two agents are named: {given} and {card.value}")
        if given or (card.source == "flag" and endpoint.source != "flag"):
            return str(given or card.value)
        if card.source == endpoint.source == "flag":
            raise UsageError("--agent-card and --endpoint exclude each other")
        if endpoint.value and (endpoint.source == "flag" or not card.value):
            return ""
        if not card.value:
            raise UsageError("no agent is named", hint="export A2ACLI_AGENT_CARD=https://agent.example.com")
        return str(card.value)

    def learn_task(self, task: Task) -> None:
        """Take note of the task that is worked on. Ids that are new are told at once, so that nothing can lose them."""
        self.state = state_name(task.status.state)
        if task.id == self.task_id:
            return
        self.task_id = task.id
        if task.id == self.named_task:
            return
        self.notes.say("Task", task.id)
        if task.context_id:
            self.notes.say("Context", task.context_id)

    def credentials(self) -> Credentials:
        """What the user gave."""
        return Credentials(
            bearer=self["bearer"] or "",
            api_key=self["api_key"] or "",
            basic=self["basic"] or "",
            scheme=self["scheme"] or "",
            key_header=self["api_key_header"] or "",
            certificate=bool(self["client_cert"]),
        )

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def _tell_of_configuration(self) -> None:
        for warning in (*self.configuration.notes, *foreign_warnings(self.configuration)):
            self.notes.warn(warning)
        for text in unknown_keys(self.configuration) if self.notes.debugging else ():
            self.notes.note(text)


def _secrets(configuration: Configuration) -> tuple[list[str], list[str]]:
    given = [configuration[key] for key in ("bearer", "api_key", "basic") if configuration[key]]
    passwords = [configuration["basic"].partition(":")[2]] if configuration["basic"] else []
    hidden = [pair for pair in configuration["svc_param"] if not is_plain_parameter(pair[0])]
    hidden += configuration["card_header"]
    names = [name for name, _ in hidden]
    return [*given, *passwords, *(value for _, value in hidden)], [*names, configuration["api_key_header"] or ""]
