"""What a protected agent looks like from outside: card, challenges, metadata, headers, limits and the log."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.routing import Mount

import dragoman
from dragoman import AgentCard, App, Caller
from dragoman.agentcore import app as hosted_app
from dragoman.auth import ApiKeys, JwtBearer, MutualTls, OpenIdConnect, Passwords, Security, Throttle
from dragoman.auth.discovery import discover
from dragoman.auth.server.throttle import Failures
from dragoman.cli.logs import JsonLines
from dragoman.errors import (
    ExtendedAgentCardNotConfiguredError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.http.client import HttpClient
from dragoman.model import GET_TASK, SEND_STREAMING_MESSAGE, GetTaskRequest, SendMessageRequest, decode_json
from dragoman.ports.operations import CallContext, Event, EventStream
from dragoman.server import RateLimit
from dragoman.server.auditing import AuditedOperations
from dragoman.server.group import AgentGroup
from dragoman.server.limiting import LimitedOperations
from tests.conformance.quick_server import quick_serving
from tests.conformance.wire import SPOKEN, said, served
from tests.identity.parts import ISSUER, ProviderProcess, bearer, token, tokens, whoami

BOTH = pytest.mark.parametrize("spoken", SPOKEN)
KEYS = ApiKeys({"ann": "key of ann", "bob": "key of bob"})
ANN = {"X-API-Key": "key of ann"}
METADATA = "/.well-known/oauth-protected-resource"


def all_schemes() -> Security:
    return Security(
        {
            "key": KEYS,
            "query": ApiKeys({"q": "q"}, name="key", location="query"),
            "cookie": ApiKeys({"c": "c"}, name="key", location="cookie"),
            "basic": Passwords({"p": "p"}),
            "token": tokens(),
            "oidc": OpenIdConnect(ISSUER, "agents"),
            "cert": MutualTls(),
        },
        require=["key", {"token": ["ask"], "cert": []}],
    )


@pytest.mark.req("DATA-32", "DATA-36", "AUTH-04", "CARD-14")
async def test_the_card_declares_what_is_enforced(enter: Any) -> None:
    client = await enter(whoami(security=all_schemes()), ANN)

    assert client.card.security_schemes.keys() == {"key", "query", "cookie", "basic", "token", "oidc", "cert"}
    wanted = [
        {name: scopes.list for name, scopes in each.schemes.items()} for each in client.card.security_requirements
    ]
    assert wanted == [{"key": []}, {"token": ["ask"], "cert": []}]
    assert (await client.run("hello")).text == "ann|"


@pytest.mark.req("DATA-32", "DATA-36", "CARD-17", "CARD-14", "SEC-05")
async def test_the_public_card_stays_public_and_holds_no_secret() -> None:
    async with served(whoami(security=all_schemes())) as wire:
        for version in ({"A2A-Version": "1.0"}, {}):
            card = await wire.ask("GET", "/.well-known/agent-card.json", headers=version)
            assert card.status == 200
            assert b"key of ann" not in card.body
        value = (await wire.ask("GET", "/.well-known/agent-card.json")).json
        old = (await wire.ask("GET", "/.well-known/agent.json", headers={})).json
        health = await wire.ask("GET", "/health")

    assert value["securitySchemes"]["key"] == {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}}
    assert value["securityRequirements"][1] == {"schemes": {"token": {"list": ["ask"]}, "cert": {}}}
    assert old["security"] == [{"key": []}, {"token": ["ask"], "cert": []}]
    assert health.status == 200


@BOTH
@pytest.mark.req("AMB-34", "ERR-02", "ERR-03", "AUTH-06", "AMB-35")
async def test_401_comes_with_a_challenge_before_anything_is_read(spoken: str) -> None:
    async with served(whoami(security=tokens())) as wire:
        told = await wire.call(spoken, "SendMessage", {"broken": True}, headers=bearer(token(exp=1)))
        bare = await wire.ask("POST", "/", b"no JSON at all")

    assert (told.status, bare.status) == (401, 401)
    assert told.code == (-32000 if spoken == "JSONRPC" else 401)
    assert told.headers["www-authenticate"] == (
        'Bearer realm="Whoami", error="invalid_token", error_description="The token has expired", '
        f'resource_metadata="{wire.url}{METADATA}"'
    )
    assert "error=" not in bare.headers["www-authenticate"]


@BOTH
@pytest.mark.req("AMB-34", "ERR-04", "AUTH-06", "AMB-36")
async def test_403_names_the_scope_that_is_lacking(spoken: str) -> None:
    security = Security({"token": tokens()}, require=[{"token": ["ask", "look"]}])
    async with served(whoami(security=security)) as wire:
        told = await wire.call(spoken, "SendMessage", said(), headers=bearer(token(scope="ask")))

    assert told.status == 403
    assert 'error="insufficient_scope"' in told.headers["www-authenticate"]
    assert 'scope="ask look"' in told.headers["www-authenticate"]


@pytest.mark.req("AUTH-06")
async def test_the_metadata_of_the_resource_is_served_and_leads_to_the_issuer(provider: ProviderProcess) -> None:
    security = Security({"token": JwtBearer(provider.issuer, "agents")}, require=[{"token": ["ask"]}])
    async with served(whoami(security=security)) as wire:
        document = await wire.ask("GET", METADATA)
        refused = await wire.rpc("SendMessage", said())
        address, http = wire.url, HttpClient()
        found = await discover(http, f"{wire.url}/", refused.headers)
        await http.aclose()
    async with served(whoami(security=KEYS)) as wire:
        assert (await wire.ask("GET", METADATA, headers=ANN)).status == 404

    assert document.json == {
        "resource": address,
        "authorization_servers": [provider.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Whoami",
        "scopes_supported": ["ask"],
    }
    assert found.problem == ""
    assert found.scopes == ("ask",)
    assert [server.issuer for server in found.servers] == [provider.issuer]


@pytest.mark.req("AUTH-06")
async def test_behind_a_proxy_the_metadata_names_the_public_address() -> None:
    async with served(whoami(security=tokens()), public_url="https://agent.example/base/") as wire:
        document = await wire.ask("GET", METADATA)
        refused = await wire.rpc("GetTask", {"id": "x"})

    assert document.json["resource"] == "https://agent.example/base"
    assert f'resource_metadata="https://agent.example/base{METADATA}"' in refused.headers["www-authenticate"]


# Before anything else: the extended card.

NO_SUCH_CARD = (UnsupportedOperationError, ExtendedAgentCardNotConfiguredError)
"""The second is what 0.3 has for it."""


@pytest.mark.req("AMB-40", "AUTH-05")
async def test_who_demands_credentials_for_everything_demands_them_first(enter: Any) -> None:
    agent = whoami(security=KEYS)
    with pytest.raises(UnauthenticatedError):
        await (await enter(agent)).get_extended_card()
    with pytest.raises(NO_SUCH_CARD):
        await (await enter(agent, ANN)).get_extended_card()


@pytest.mark.req("AMB-40")
async def test_who_does_not_says_without_them_that_there_is_no_extended_card(enter: Any) -> None:
    agent = whoami(security=Security({"key": KEYS}, require=[]))

    with pytest.raises(NO_SUCH_CARD):
        await (await enter(agent)).get_extended_card()
    assert (await (await enter(agent)).run("hello")).text == "|"


# Guessing is slow.


@pytest.mark.req("SEC-07")
async def test_after_some_failures_guesses_are_not_looked_at_while_the_known_go_on() -> None:
    async with served(whoami(security=Security({"key": KEYS}, throttle=Throttle(attempts=3)))) as wire:
        assert (await wire.rpc("SendMessage", said(), headers=ANN)).status == 200
        statuses = [(await wire.rpc("ListTasks", {}, headers={"X-API-Key": f"guess {n}"})).status for n in range(5)]
        right = await wire.rpc("ListTasks", {}, headers={"X-API-Key": "key of bob"})
        known = await wire.rpc("ListTasks", {}, headers=ANN)
        nothing = await wire.rpc("ListTasks", {})

    assert statuses == [401, 401, 401, 429, 429]
    assert right.status == 429, "a guesser does not learn that it was right"
    assert int(right.headers["retry-after"]) >= 1
    assert known.status == 200
    assert nothing.status == 401


def test_failures_are_forgotten_with_time_and_bounded_in_number() -> None:
    failures = Failures(Throttle(attempts=2, per=10))
    for _ in range(3):
        failures.failed("192.0.2.1", 0.0)
    for number in range(10_000):
        failures.failed(f"198.51.{number % 256}.{number // 256}", 0.0)
        failures.succeeded(str(number).encode())

    assert failures.wait("192.0.2.99", b"", 0.0) == 0
    assert len(failures._left) <= 4096
    assert len(failures._good) <= 4096
    for _ in range(2):
        failures.failed("2001:db8::1", 100.0)
    assert failures.wait("2001:db8::2", b"", 100.0) == 5.0, "the network of an address is what counts"
    assert failures.wait("2001:db8::2", b"", 105.0) == 0


# Limits.


@pytest.mark.req("SEC-10", "AMB-38")
async def test_each_caller_has_a_limit_of_its_own(enter: Any) -> None:
    agent = whoami(security=KEYS)
    ann = await enter(agent, ANN, rate_limit=RateLimit(3, per=3600))
    bob = await enter(agent, {"X-API-Key": "key of bob"})

    for _ in range(3):
        assert (await ann.send("hello")).status is not None
    with pytest.raises(RateLimitedError) as raised:
        await ann.send("hello")
    assert raised.value.retry_after is None or raised.value.retry_after > 60
    assert (await bob.send("hello")).status is not None


@pytest.mark.req("SEC-10")
async def test_addresses_of_one_network_have_one_limit_while_they_are_nobody() -> None:
    class Nothing:
        async def call(self, op: Any, request: Any, context: Any) -> None: ...

    limited = LimitedOperations(Nothing(), limits=RateLimit(1, per=3600), now=lambda: 0.0)  # type: ignore[arg-type]

    async def ask(address: str) -> None:
        await limited.call(GET_TASK, GetTaskRequest(id="t"), CallContext(caller=Caller(address=address)))

    await ask("2001:db8::1")
    await ask("192.0.2.1")
    await ask("192.0.2.2")
    with pytest.raises(RateLimitedError):
        await ask("2001:db8::2")


@BOTH
@pytest.mark.req("SEC-10", "SEC-11", "AMB-38")
async def test_limits_may_differ_and_say_when_to_come_back(spoken: str) -> None:
    def limits(caller: Caller, operation: str) -> RateLimit | None:
        return RateLimit(1, per=120) if operation == "SendMessage" else None

    async with served(whoami(), rate_limit=limits) as wire:
        first = await wire.call(spoken, "SendMessage", said())
        second = await wire.call(spoken, "SendMessage", said())
        listed = [(await wire.call(spoken, "ListTasks")).status for _ in range(3)]

    assert (first.status, second.status, listed) == (200, 429, [200, 200, 200])
    assert 100 < int(second.headers["retry-after"]) <= 120


# The log.


@pytest.mark.req("SEC-08", "SEC-09", "SEC-17")
async def test_each_call_leaves_a_line_with_who_what_which_task_and_how_it_ended(
    enter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman.audit")
    client = await enter(whoami(security=KEYS), ANN)
    task = await client.send("a private matter")
    with pytest.raises(dragoman.A2AError):
        await client.get_task("no-such-task")

    told = [vars(record)["audit"] for record in caplog.records if record.name == "dragoman.audit"]
    calls = [(each["caller"], each["operation"], each["task"], each["result"]) for each in told]
    assert calls == [
        ("ann", "SendMessage", task.id, "ok"),
        ("ann", "GetTask", "no-such-task", "TASK_NOT_FOUND"),
    ]
    lines = "".join(record.getMessage() for record in caplog.records if record.name == "dragoman.audit")
    assert "private" not in lines
    assert "key of ann" not in lines


async def test_a_stream_leaves_a_line_with_the_task_that_it_opened(
    enter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman.audit")
    client = await enter(whoami(security=KEYS), ANN)

    result = await client.run("hello")

    told = [vars(record)["audit"] for record in caplog.records if record.name == "dragoman.audit"]
    assert [(each["operation"], each["task"], each["result"]) for each in told] == [
        ("SendStreamingMessage", result.task.id, "ok")
    ]


async def test_a_name_cannot_write_lines_of_its_own_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.audit")

    async def identify(scope: Any) -> Caller:
        return Caller(id="eve\ncaller=ann operation=CancelTask")

    async with served(whoami(), identify=identify, audit=True) as wire:
        await wire.rpc("GetTask", {"id": "t 1\r\nresult=ok"})

    (line,) = [record.getMessage() for record in caplog.records if record.name == "dragoman.audit"]
    assert "\n" not in line
    assert "\r" not in line
    assert line.startswith(r"caller='eve\ncaller=ann operation=CancelTask' ")


@pytest.mark.req("SEC-08")
@pytest.mark.parametrize("how", ["left", "failed"])
async def test_a_stream_that_never_began_leaves_a_line_too(how: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.audit")

    class Broken(EventStream):
        async def next_batch(self) -> list[Event]:
            raise UnavailableError

        async def aclose(self) -> None: ...

    class Streams:
        async def stream(self, op: Any, request: Any, context: Any) -> EventStream:
            return Broken()

    audited = AuditedOperations(Streams())  # type: ignore[arg-type]
    stream = await audited.stream(
        SEND_STREAMING_MESSAGE, decode_json(SendMessageRequest, json.dumps(said()).encode()), CallContext()
    )
    if how == "failed":
        with pytest.raises(UnavailableError):
            await stream.next_batch()
    await stream.aclose()

    (line,) = [record.getMessage() for record in caplog.records if record.name == "dragoman.audit"]
    assert line.startswith("operation=SendStreamingMessage result=" + {"left": "ok", "failed": "UNAVAILABLE"}[how])


@pytest.mark.req("SEC-07", "SEC-09")
@pytest.mark.parametrize(("path", "version"), [("/tasks", {}), ("/v1/tasks", {"A2A-Version": None})])
async def test_what_is_said_of_tasks_is_kept_by_nobody_between(path: str, version: dict[str, None]) -> None:
    async with served(whoami(security=KEYS)) as wire:
        task = (await wire.rpc("SendMessage", said(), headers=ANN)).result["task"]
        mine = await wire.rest("GET", f"{path}/{task['id']}", headers={**ANN, **version})
        missing = await wire.rest("GET", f"{path}/nothing", headers={**ANN, **version})

    assert (mine.status, missing.status) == (200, 404)
    assert {mine.headers["cache-control"], missing.headers["cache-control"]} == {"no-store"}


@pytest.mark.req("SEC-09")
async def test_an_address_cannot_write_lines_of_its_own_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with served(whoami(security=KEYS)) as wire:
        await wire.rest("GET", "/tasks/%0Acaller=ann%1B[2J%E2%80%AE", headers={"X-API-Key": "guessed"})

    (line,) = [record.getMessage() for record in caplog.records if record.name == "dragoman.audit"]
    assert line.isascii()
    assert line.isprintable()
    assert line.endswith(r"at=http '/tasks/\ncaller=ann\x1b[2J\u202e'")


# Headers of browsers.


@pytest.mark.req("SEC-14", "SEC-01")
async def test_answers_tell_browsers_that_they_are_data() -> None:
    async with served(whoami(security=KEYS), public_url="https://agent.example") as wire, served(whoami()) as plain:
        nothing_special = await plain.rest("GET", "/tasks")
        answers = [
            await wire.rpc("ListTasks", {}),
            await wire.rest("GET", "/tasks"),
            await wire.ask("GET", "/.well-known/agent-card.json"),
            await wire.ask("GET", "/nowhere"),
        ]

    assert nothing_special.headers["x-content-type-options"] == "nosniff"
    for told in answers:
        assert told.headers["x-content-type-options"] == "nosniff"
        assert told.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert told.headers["strict-transport-security"].startswith("max-age=")


async def test_pages_that_may_call_may_send_the_key() -> None:
    async with served(whoami(security=KEYS), cors=("https://page.example",)) as wire:
        asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
        told = await wire.ask("OPTIONS", "/", headers=asked)

    assert "X-API-Key" in told.headers["access-control-allow-headers"]


# With others.


async def test_an_agent_that_demands_nothing_has_nothing_put_before_its_operations() -> None:
    app = App(whoami())

    assert app.operations is app.runtime
    assert app.identify is None


async def test_identify_names_who_it_is_that_was_let_in(enter: Any) -> None:
    async def identify(scope: Any) -> Caller:
        return Caller(id="team a")

    agent = whoami(security=tokens())
    inside = await enter(agent, bearer(token(scope="ask")), identify=identify)
    assert (await inside.run("hello")).text == "team a|ask"
    with pytest.raises(UnauthenticatedError):
        await (await enter(agent)).run("hello")


@pytest.mark.req("AC-S-14")
async def test_hosted_on_agentcore_a_refusal_has_status_200() -> None:
    hosted = hosted_app(whoami(security=tokens()), store="memory")
    async with hosted, httpx2.AsyncClient(transport=httpx2.ASGITransport(hosted), base_url="http://agent") as http:
        request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": said()}
        told = await http.post("/", json=request, headers={"A2A-Version": "1.0"})
        good = await http.post("/", json=request, headers={"A2A-Version": "1.0", **bearer(token())})

    assert (told.status_code, told.json()["error"]["code"]) == (200, -32000)
    assert "result" in good.json()


@pytest.mark.req("AUTH-05")
async def test_a_scope_that_lacks_is_told_on_every_door(enter: Any) -> None:
    agent = whoami(security=Security({"token": tokens()}, require=[{"token": ["ask"]}]))

    with pytest.raises(PermissionDeniedError):
        await (await enter(agent, bearer(token()))).send("hello")


async def test_mounted_below_a_path_the_metadata_is_found_there() -> None:
    inner = App(whoami(security=tokens()))
    outer = Starlette(routes=[Mount("/agents/who", app=inner)])
    async with quick_serving_any(outer, inner) as url, httpx2.AsyncClient() as http:
        refused = await http.post(f"{url}/agents/who/", json={})
        challenge = refused.headers["www-authenticate"]
        place = challenge.partition('resource_metadata="')[2].partition('"')[0]
        document = (await http.get(place)).json()

    assert place == f"{url}/agents/who{METADATA}"
    assert document["resource"] == f"{url}/agents/who"


def quick_serving_any(outer: Any, inner: App) -> Any:
    """Serve an app within another; what is started and stopped is the inner one."""

    class Within:
        scopes = inner.scopes
        settings = inner.settings
        start = staticmethod(inner.start)
        stop = staticmethod(inner.stop)

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await outer(scope, receive, send)

    return quick_serving(Within())  # type: ignore[arg-type]


def test_json_lines_hold_what_the_audit_says() -> None:
    record = logging.LogRecord("dragoman.audit", logging.INFO, "", 0, "a\nb %s", ("c",), None)
    record.audit = {"caller": "ann"}

    text = JsonLines().format(record)

    assert "\n" not in text
    value = json.loads(text)
    assert (value["message"], value["audit"], value["level"]) == ("a\nb c", {"caller": "ann"}, "info")


@pytest.mark.req("AMB-40", "AUTH-05", "SEC-16")
async def test_who_is_open_demands_credentials_for_its_extended_card_only(enter: Any) -> None:
    agent = whoami(security=Security({"key": KEYS}, require=[]))

    @agent.extended_card
    def extend(caller: Caller, card: AgentCard) -> AgentCard:
        return replace(card, description=f"For {caller.id}.")

    nobody, ann = await enter(agent), await enter(agent, ANN)

    assert (await nobody.run("hello")).text == "|"
    assert (await ann.get_extended_card()).description == "For ann."
    with pytest.raises(UnauthenticatedError):
        await nobody.get_extended_card()


@pytest.mark.parametrize(("by", "below"), [("path", "/one/"), ("tenant", "/")])
async def test_of_several_agents_in_one_process_each_leads_to_its_metadata(by: Any, below: str) -> None:
    group = AgentGroup({"one": whoami(), "two": whoami()}, by=by, security=tokens())
    async with quick_serving(group) as url, httpx2.AsyncClient() as http:  # type: ignore[arg-type]
        refused = await http.post(f"{url}{below}", json={}, headers={"A2A-Version": "1.0"})
        place = refused.headers["www-authenticate"].partition('resource_metadata="')[2].partition('"')[0]
        document = (await http.get(place)).json()

    assert refused.status_code == 401
    assert document["resource"] == f"{url}{below}".rstrip("/")
    assert document["authorization_servers"] == [ISSUER]
