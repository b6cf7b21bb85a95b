"""Tables of the documentation say what the code says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import TypeVar

import pytest

import dragoman
import dragoman.agentcore
import dragoman.auth
from dragoman import Agent, App, Client, Limits, Result
from dragoman.agentcore import Profile
from dragoman.bindings.settings import EndpointSettings
from dragoman.cli.classify import EXIT_STATUS
from dragoman.cli.settings import SETTINGS
from dragoman.cli.tree import COMMANDS, load
from dragoman.client import MessageOptions, SendOptions
from dragoman.errors import A2AError, DragomanError, RemoteError
from dragoman.model import OPERATIONS
from dragoman.protocol.extensions import RESUMABLE_STREAMS
from dragoman.push import PushSettings
from dragoman.server import Context
from dragoman.webhook import ReceiverSettings
from tests.docs.tables import DOCS, names_in, read_table
from tests.house.snippets import read_blocks

E = TypeVar("E", bound=DragomanError)

OF_THE_ADAPTER = {"finish", "end"}
"""Methods of a context that the adapter of a handler calls, and not its author."""


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def descendants(kind: type[E]) -> Iterator[type[E]]:
    for child in kind.__subclasses__():
        if child.__module__ == "dragoman.errors":
            yield child
            yield from descendants(child)


def tree(kind: type[Exception], depth: int = 0) -> str:
    children = [child for child in kind.__subclasses__() if child.__module__ == "dragoman.errors"]
    return f"{'  ' * depth}{kind.__name__}:\n" + "".join(tree(child, depth + 1) for child in children)


def test_limits_and_their_defaults() -> None:
    shown = {name: default for name, default, _ in read_table("agents.md", "limit", "default")}

    assert shown == {name: f"{value:g}" if value is not None else "None" for name, value in limits().items()}


def limits() -> dict[str, float | None]:
    return {name: getattr(Limits(), name) for name in Limits.__struct_fields__}


def test_limits_that_other_pages_mention() -> None:
    known = limits()
    shown = re.findall(r"`(\w+)` \(([\d,]+)(?:\)| s\))", page("runtime.md"))

    assert len(shown) >= 6
    for name, number in shown:
        default = known[name] if name in known else getattr(EndpointSettings(), name)
        assert default == int(number.replace(",", "")), name


@pytest.mark.req("ERR-14")
def test_codes_of_errors() -> None:
    shown = read_table("wire.md", "class in dragoman.errors")
    errors = [kind for kind in descendants(A2AError) if kind is not RemoteError]

    assert sorted(shown) == sorted(
        (kind.__name__, str(kind.code), str(kind.http_status), kind.grpc_status, kind.reason) for kind in errors
    )


def test_the_tree_of_exceptions() -> None:
    (block,) = [block for block in read_blocks(DOCS / "client.md") if block.language == "yaml"]

    assert block.text == tree(DragomanError)


def test_operations_and_their_paths() -> None:
    shown = read_table("wire.md", "operation (and JSON-RPC method)")

    assert sorted(shown) == sorted((op.name, f"{op.http_method} {op.http_path}") for op in OPERATIONS.values())


def test_everything_that_a_context_has() -> None:
    came = {row[0] for row in read_table("agents.md", "attribute", "holds")}
    verbs = {row[0] for row in read_table("agents.md", "verb", "does")}
    shown = {name for cell in came | verbs for name in re.findall(r"ctx\.(\w+)", cell)}

    assert shown == public(Context) - OF_THE_ADAPTER


def test_arguments_of_an_agent() -> None:
    shown = {row[0] for row in read_table("agents.md", "argument of Agent")}

    assert shown == set(inspect.signature(Agent).parameters)


def test_arguments_of_an_app_and_their_defaults() -> None:
    shown = {name: default for name, _, default in read_table("agents.md", "argument", "meaning")}
    known = inspect.signature(App).parameters

    assert shown.keys() == known.keys() - {"agent"}
    numbers = {name: default for name, default in shown.items() if re.fullmatch(r"[\d.]+|True|False", default)}
    assert {name: str(known[name].default).removesuffix(".0") for name in numbers} == numbers


def test_arguments_of_a_proxy_and_their_defaults() -> None:
    rows = read_table("agents.md", "argument of proxy_app")
    shown = {name: default for names, _, default in rows for name in names_in(names)}
    known = inspect.signature(dragoman.ProxyApp).parameters
    shared = set(inspect.signature(App).parameters) & set(known) - {"card_max_age", "push"}  # which are others here

    assert shown.keys() == known.keys() - shared - {"target", "now", "upstream"}
    assert all(f"`{name}`" in page("agents.md") for name in shared)
    numbers = {name: default for name, default in shown.items() if re.fullmatch(r"[\d.]+|True|False", default)}
    assert {name: str(known[name].default).removesuffix(".0") for name in numbers} == numbers


def test_times_of_a_connection() -> None:
    known = inspect.signature(dragoman.connect).parameters

    for name, default, _ in read_table("client.md", "argument of connect"):
        assert float(default) == known[name].default


def test_every_argument_of_connect_is_mentioned() -> None:
    known = set(inspect.signature(dragoman.connect).parameters) - {"target", "clock"}

    assert [name for name in known if f"`{name}" not in page("client.md") and f"{name}=" not in page("client.md")] == []


def test_settings_of_webhooks_and_their_defaults() -> None:
    rows = read_table("push.md", "setting", "means")
    shown = {name for names, *_ in rows for name in names_in(names)}
    numbers = {name: default for name, _, default in rows if re.fullmatch(r"\d+", default)}

    assert shown == set(PushSettings.__struct_fields__) - {"resolver"}
    assert {name: f"{getattr(PushSettings(), name):g}" for name in numbers} == numbers


def test_settings_of_a_receiver_are_mentioned() -> None:
    assert [name for name in ReceiverSettings.__struct_fields__ if f"`{name}`" not in page("push.md")] == []


def test_arguments_of_a_signer() -> None:
    shown = {row[0] for row in read_table("cards.md", "argument of CardSigner")}

    assert shown == set(inspect.signature(dragoman.CardSigner).parameters)


def test_settings_of_agentcore_are_mentioned() -> None:
    for_tests = {"environment", "clock", "monotonic", "wall"}
    settings = set(Profile.__struct_fields__) - for_tests

    assert [name for name in settings if f"`{name}`" not in page("agentcore.md")] == []


def test_options_of_a_message() -> None:
    shown = {name for row in read_table("client.md", "option", "meaning") for name in names_in(row[0])}

    assert shown == set(SendOptions.__annotations__)
    assert all(name in page("client.md") for name in MessageOptions.__annotations__)


def test_everything_that_a_result_has() -> None:
    shown = {name for row in read_table("client.md", "attribute of Result") for name in names_in(row[0])}

    assert shown == public(Result)


def test_every_method_of_a_client_is_mentioned() -> None:
    text = page("client.md")

    assert [name for name in public(Client) if not re.search(rf"\b{name}\b", text)] == []


def test_commands_of_the_command_line() -> None:
    shown = [re.sub(r"^dragoman | [A-Z].*| --.*", "", row[0]) for row in read_table("cli.md", "command", "does")]

    assert set(shown) == {entry.path for entry in COMMANDS}


def test_options_and_variables_that_the_page_on_the_command_line_names_exist() -> None:
    params = [param for entry in COMMANDS for param in load(entry).params]
    options = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    variables = {setting.env for setting in SETTINGS} | {str(param.envvar) for param in params if param.envvar}
    text = "".join(re.findall(r"`[^`]+`|^```sh.*?^```", page("cli.md"), re.MULTILINE | re.DOTALL))

    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - options == set()
    assert set(re.findall(r"\b(?:A2ACLI|DRAGOMAN)_\w+", text)) - variables == set()


def test_statuses_with_which_the_command_line_exits() -> None:
    shown = {row[0] for row in read_table("cli.md", "status", "means")}

    assert {str(status) for status in EXIT_STATUS.values()} <= shown


def test_the_extension_has_its_address() -> None:
    assert RESUMABLE_STREAMS in page("wire.md")


@pytest.mark.req("AUTH-11", "CTX-09", "AMB-52")
def test_the_policies_that_a_server_has_to_tell_are_told() -> None:
    told = {title for file in DOCS.glob("*.md") for title in re.findall(r"^##+ (.+)$", file.read_text("utf-8"), re.M)}

    assert {"Who may see what", "Contexts and history", "Retention"} <= told


def test_pages_claim_nothing_of_names_that_are_gone() -> None:
    rooms = (dragoman.agentcore, dragoman.auth, dragoman.client)
    known = {kind.__name__ for kind in descendants(DragomanError)} | {name for room in rooms for name in room.__all__}
    shown = {name for file in DOCS.glob("*.md") for name in re.findall(r"\b\w+Error\b", file.read_text("utf-8"))}

    assert shown - known <= {"DragomanError", "CancelledError", "TimeoutError", "ValueError"}
