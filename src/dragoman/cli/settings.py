"""The settings that every command takes: one table for options, environment, files, help and ``config show``.

Spec: A2ACLI_DEFAULT_001, A2ACLI_CONFIG_002, P-03, P-08, P-09.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.cli import values

Reader = Callable[[str], Any]

ON_COMMAND_LINE = (
    "Visible to others in the process table and in the shell history when it is written on the command line: prefer "
    "the environment variable."
)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting.

    * ``name``: of the long option, without dashes; ``flags``: all spellings on the command line;
    * ``env``: its environment variable and its key in files, empty when it comes from the command line only;
    * ``read``: from text to value, raising ValueError; ``default``: the built-in value as text;
    * ``shown``: what help says in place of an empty default;
    * ``in_files``: whether files may set it; ``words``: what a shell may complete it with.
    """

    name: str
    flags: tuple[str, ...]
    env: str
    help: str
    read: Reader = values.read_text
    metavar: str = "TEXT"
    default: str = ""
    shown: str = ""
    repeatable: bool = False
    is_flag: bool = False
    secret: bool = False
    in_files: bool = True
    words: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The name as an identifier of Python."""
        return self.name.replace("-", "_")

    def read_all(self, text: str) -> Any:
        """The value in a text out of the environment, a file or the table."""
        if self.repeatable:
            return [self.read(item) for item in values.read_list(text)]
        return values.read_flag(text) if self.is_flag else self.read(text)

    @property
    def built_in(self) -> Any:
        """The value when nobody says anything."""
        if self.default:
            return self.read_all(self.default)
        return [] if self.repeatable else False if self.is_flag else None


def _flag(name: str, help: str, *, env: str, more: tuple[str, ...] = ()) -> Setting:
    short = [flag for flag in more if len(flag) == 2]
    flags = (*short, f"--{name}", *(flag for flag in more if len(flag) > 2))
    return Setting(name=name, flags=flags, env=env, help=help, is_flag=True, shown="off")


def _value(name: str, metavar: str, help: str, *, env: str, short: str = "", **more: Any) -> Setting:
    flags = (short, f"--{name}") if short else (f"--{name}",)
    return Setting(name=name, flags=flags, env=env, metavar=metavar, help=help, **more)


SETTINGS: tuple[Setting, ...] = (
    _value(
        "agent-card",
        "REF",
        "The agent to talk to: a host, the URL of its card, or a file.",
        env="A2ACLI_AGENT_CARD",
        short="-a",
        shown="none",
    ),
    _value(
        "endpoint",
        "URL",
        "Talk to this interface without a card; needs exactly one --transport.",
        env="A2ACLI_ENDPOINT",
        short="-e",
        shown="none",
    ),
    _value(
        "arn",
        "ARN|URL",
        "The agent to talk to, on Amazon Bedrock AgentCore: its ARN, or a URL of its runtime. Signed with AWS "
        "credentials, unless there is --bearer.",
        env="DRAGOMAN_ARN",
        shown="none",
    ),
    _value(
        "endpoint-url",
        "URL",
        "With --arn: another host to call, of a VPC endpoint or a stand-in.",
        env="DRAGOMAN_ENDPOINT_URL",
        shown="that of the region",
    ),
    _value(
        "qualifier",
        "NAME",
        "With --arn: the endpoint of the runtime.",
        env="DRAGOMAN_QUALIFIER",
        shown="DEFAULT",
    ),
    _value(
        "region",
        "REGION",
        "With --arn: the region, where it is another than that of the ARN.",
        env="DRAGOMAN_REGION",
        shown="that of the ARN",
    ),
    _value(
        "session-id",
        "ID",
        "With --arn: the session, which keeps the memory of the agent; 33 characters or more.",
        env="DRAGOMAN_SESSION_ID",
        shown="a fresh one",
    ),
    _value(
        "transport",
        "BINDING",
        "Binding to prefer: JSONRPC or HTTP+JSON; repeat it for an order.",
        env="A2ACLI_TRANSPORT",
        read=values.read_binding,
        words=("JSONRPC", "HTTP+JSON"),
        repeatable=True,
        shown="order of the card",
    ),
    _value(
        "a2a-version",
        "VERSION",
        "Protocol version to insist on, 1.0 or 0.3; it is sent with every request.",
        env="A2ACLI_A2A_VERSION",
        read=values.read_version,
        shown="highest common, at least 1.0",
    ),
    _value(
        "output",
        "text|json",
        "Format of the output.",
        env="A2ACLI_OUTPUT",
        short="-o",
        read=values.one_of("text", "json"),
        words=("text", "json"),
        default="text",
    ),
    _flag("compact", "Print a JSON document on one line.", env="DRAGOMAN_COMPACT"),
    _flag("verbose", "Show more of what was exchanged.", env="A2ACLI_VERBOSE", more=("-v",)),
    _flag("debug", "Say on standard error what goes over the wire, secrets left out.", env="A2ACLI_DEBUG"),
    _value(
        "progress",
        "auto|off",
        "A line of progress on standard error, when that is a terminal.",
        env="DRAGOMAN_PROGRESS",
        read=values.one_of("auto", "off"),
        words=("auto", "off"),
        default="auto",
    ),
    _flag(
        "async",
        "Do not wait: return as soon as the task exists.",
        env="A2ACLI_ASYNC",
        more=("--return-immediately", "--no-wait"),
    ),
    _flag(
        "wait",
        "Wait until the task is over or needs input (the default of send).",
        env="A2ACLI_WAIT",
        more=("--watch",),
    ),
    _value(
        "wait-mode",
        "stream|poll|block",
        "How to wait: by the event stream where there is one, by polling, or in one long request.",
        env="DRAGOMAN_WAIT_MODE",
        read=values.one_of("stream", "poll", "block"),
        words=("stream", "poll", "block"),
        default="stream",
    ),
    _value(
        "poll-interval",
        "DURATION",
        "Time between two looks at a task.",
        env="A2ACLI_POLL_INTERVAL",
        read=values.read_poll_interval,
        default="2s",
    ),
    _value(
        "timeout",
        "DURATION",
        "How long all of it may take; 0: no limit.",
        env="A2ACLI_TIMEOUT",
        read=values.read_limit,
        default="5m",
    ),
    _value(
        "connect-timeout",
        "DURATION",
        "How long the making of a connection may take.",
        env="DRAGOMAN_CONNECT_TIMEOUT",
        read=values.read_duration,
        default="10s",
    ),
    _value(
        "request-timeout",
        "DURATION",
        "How long a single request may take; 0: no limit.",
        env="DRAGOMAN_REQUEST_TIMEOUT",
        read=values.read_limit,
        default="60s",
    ),
    _value("context-id", "ID", "Continue in this context.", env="A2ACLI_CONTEXT_ID", shown="none"),
    _value("task-id", "ID", "The task that is meant; send continues it.", env="A2ACLI_TASK_ID", shown="none"),
    _value(
        "metadata",
        "JSON",
        "Metadata of the request, a JSON object.",
        env="A2ACLI_METADATA",
        read=values.read_object,
        shown="none",
    ),
    _value(
        "svc-param",
        "NAME:VALUE",
        "Service parameter, sent as an HTTP header with every request to the agent.",
        env="A2ACLI_SVC_PARAM",
        read=values.read_service_parameter,
        repeatable=True,
        secret=True,
        shown="none",
    ),
    _value(
        "extension",
        "URI",
        "Extension to ask for.",
        env="DRAGOMAN_EXTENSION",
        repeatable=True,
        shown="none",
    ),
    _value(
        "bearer",
        "TOKEN",
        f"Bearer token. {ON_COMMAND_LINE}",
        env="A2ACLI_BEARER",
        secret=True,
        shown="none",
    ),
    _value(
        "api-key",
        "KEY",
        f"API key, sent where the card says. {ON_COMMAND_LINE}",
        env="A2ACLI_API_KEY",
        secret=True,
        shown="none",
    ),
    _value(
        "basic",
        "USER:PASSWORD",
        f"User and password of HTTP Basic. {ON_COMMAND_LINE}",
        env="DRAGOMAN_BASIC",
        secret=True,
        shown="none",
    ),
    _value(
        "api-key-header",
        "NAME",
        "Header for the API key, where no card says it.",
        env="DRAGOMAN_API_KEY_HEADER",
        read=values.read_header_name,
        shown="X-API-Key with --endpoint",
    ),
    _value("scheme", "NAME", "Security scheme of the card to use.", env="DRAGOMAN_SCHEME", shown="first that fits"),
    _value(
        "card-header",
        "NAME:VALUE",
        "Header for the request for the card, and for nothing else.",
        env="DRAGOMAN_CARD_HEADER",
        read=values.read_header,
        repeatable=True,
        secret=True,
        shown="none",
    ),
    _value(
        "tenant", "ID", "Tenant, together with --endpoint; else the card says it.", env="DRAGOMAN_TENANT", shown="none"
    ),
    _flag("insecure", "Do not verify certificates of TLS. Warns.", env="A2ACLI_INSECURE"),
    _value(
        "ca-cert", "FILE", "Certificates to trust in place of the system's.", env="DRAGOMAN_CA_CERT", shown="system"
    ),
    _value(
        "client-cert",
        "FILE",
        "Certificate to show in TLS, in PEM, with the chain behind it.",
        env="DRAGOMAN_CLIENT_CERT",
        shown="none",
    ),
    _value(
        "client-key",
        "FILE",
        "Its key, in PEM; the passphrase of an encrypted one is in DRAGOMAN_CLIENT_KEY_PASSPHRASE.",
        env="DRAGOMAN_CLIENT_KEY",
        shown="in the file of --client-cert",
    ),
    _flag(
        "no-stored-token",
        "Do not use the logins that are kept (auth login).",
        env="DRAGOMAN_NO_STORED_TOKEN",
    ),
    _flag(
        "ignore-capabilities",
        "Try what the card does not offer.",
        env="DRAGOMAN_IGNORE_CAPABILITIES",
    ),
    _value(
        "config",
        "FILE",
        "File of settings to read in place of the nearest .env.",
        env="A2ACLI_CONFIG",
        in_files=False,
        shown="nearest .env upward",
    ),
)

BY_KEY = {setting.key: setting for setting in SETTINGS}
BY_ENV = {setting.env: setting for setting in SETTINGS}
