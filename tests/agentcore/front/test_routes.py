"""The public paths, the session header, what passes and what does not."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from dragoman.errors import ConfigurationError
from dragoman.testing.agentcore_front import FrontSettings, Jwt, Lifecycle
from dragoman.testing.agentcore_front.headers import REQUEST_ID, SESSION_ID, check_allow_list
from dragoman.testing.agentcore_front.settings import ARN
from tests.agentcore.front.parts import BUSY_TEXT, OTHER, SESSION, Container, rehearsal, rpc, until


@pytest.mark.req("AC-F-01")
async def test_the_paths_of_a_runtime_reach_the_container_with_and_without_a_slash(container: Container) -> None:
    async with rehearsal(container) as caller:
        base = caller.front.invocation_url
        answers = [await caller.post(url=url) for url in (base, base.rstrip("/"), f"{base}?qualifier=DEFAULT")]
        card = await caller.card()

    assert [answer.json()["result"] for answer in answers] == ["ok"] * 3
    assert (card.status_code, card.json()) == (200, {"name": "tide-desk"})
    assert all("arn%3Aaws%3Abedrock-agentcore" in record.target for record in caller.front.requests)


@pytest.mark.req("AC-F-01")
async def test_what_is_not_there_and_what_is_asked_for_the_wrong_way(container: Container) -> None:
    async with rehearsal(container) as caller:
        base, escaped = caller.front.invocation_url, caller.front.arn.replace(":", "%3A").replace("/", "%2F")
        there = base.replace(escaped, "{}")
        unknown = [
            await caller.post(url=there.format(escaped + "x")),
            await caller.post(url=there.format(caller.front.arn)),  # not escaped: its slash is one of the path
            await caller.post(url=there.format(escaped.replace("%", "%25"))),
            await caller.post(url=f"{base}?qualifier=prod"),
            await caller.post(url=f"{base}elsewhere"),
            await caller.post(url=there.format("rehearsal-Ab12Cd34Ef") + "?accountId=999999999999"),
            await caller.get(there.format("rehearsal-Ab12Cd34Ef") + ".well-known/agent-card.json"),
        ]
        bad = [
            await caller.get(base),
            await caller.post(url=f"{base}.well-known/agent-card.json"),
            await caller.post(url=there.format("rehearsal-Ab12Cd34Ef")),
        ]
        by_id = await caller.post(url=there.format("rehearsal-Ab12Cd34Ef") + "?accountId=111122223333")

    assert {(a.status_code, a.json()["error"]["code"]) for a in unknown} == {(404, -32051)}
    assert {(a.status_code, a.json()["error"]["code"]) for a in bad} == {(400, -32052)}
    assert by_id.status_code == 200


@pytest.mark.req("AC-F-03")
async def test_a_session_id_is_made_up_where_there_is_none_and_always_given_back(container: Container) -> None:
    async with rehearsal(container) as caller:
        made = await caller.post(session=None)
        given = await caller.post(session=SESSION)
        refused = [await caller.post(session="s" * length) for length in (1, 32, 257)]
        taken = [await caller.post(session="s" * length) for length in (33, 256)]

    assert len(str(uuid.UUID(made.headers[SESSION_ID]))) == 36
    assert given.headers[SESSION_ID] == SESSION
    assert {(a.status_code, a.json()["error"]["code"]) for a in refused} == {(400, -32052)}
    assert "33 to 256 characters" in refused[0].json()["error"]["message"]
    assert [a.status_code for a in taken] == [200, 200]


@pytest.mark.req("AC-F-04", "AC-F-03")
async def test_a_session_that_is_coming_refuses_everything_but_its_first_call(container: Container) -> None:
    settings = FrontSettings(lifecycle=Lifecycle(create_s=1.0))
    async with rehearsal(container, settings=settings) as caller:
        first = asyncio.create_task(caller.post())
        await until(lambda: SESSION in caller.front.sessions)
        busy = [await caller.post(), await caller.card(), await caller.stop()]
        other = await caller.post(rpc(), session=OTHER)
        done = await first
        after = await caller.post()

    assert {(a.status_code, a.json()["error"]["code"], a.json()["error"]["message"]) for a in busy} == {
        (409, -32054, BUSY_TEXT)
    }
    assert [other.status_code, done.status_code, after.status_code] == [200, 200, 200]
    assert len(container.posts) == 3


@pytest.mark.req("AC-F-05")
async def test_only_what_is_allowed_reaches_the_container(container: Container) -> None:
    settings = FrontSettings(allow_list=("X-Amzn-Bedrock-AgentCore-Runtime-Custom-Tenant", "authorization"))
    async with rehearsal(container, settings=settings) as caller:
        await caller.post(
            accept="text/event-stream",
            traceparent="00-1",
            baggage="b" * 8_193,
            authorization="Bearer secret",
            a2a_version="1.0",
            a2a_extensions="https://extension.example",
            x_amzn_bedrock_agentcore_runtime_custom_tenant="blue",
            x_amzn_bedrock_agentcore_runtime_custom_other="red",
            x_amzn_bedrock_agentcore_runtime_user_id="somebody",
            cookie="a=b",
        )

    headers, body = container.posts[0]
    forwarded = {name: value for name, value in headers.items() if name not in ("host", "connection")}
    assert body == rpc()
    token = forwarded.pop("workloadaccesstoken")
    assert token
    assert forwarded.pop("x-amz-bedrock-agentcore-identity-wat") == token
    assert uuid.UUID(forwarded.pop(REQUEST_ID))
    assert forwarded.pop("oauth2callbackurl").startswith("https://")
    assert forwarded == {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": forwarded["user-agent"],
        "traceparent": "00-1",
        SESSION_ID: SESSION,
        "x-amzn-bedrock-agentcore-runtime-custom-tenant": "blue",
    }


@pytest.mark.req("AC-F-05")
async def test_a_version_passes_once_it_is_allow_listed(container: Container) -> None:
    async with rehearsal(container, settings=FrontSettings(allow_list=("A2A-Version",))) as caller:
        await caller.post(a2a_version="1.0")
        oversize = await caller.post(a2a_version="1" * 4_097)

    assert [headers["a2a-version"] for headers, _ in container.posts] == ["1.0"]
    assert (oversize.status_code, oversize.json()["error"]["code"]) == (400, -32052)


@pytest.mark.req("AC-F-05", "AC-F-08")
async def test_authorization_passes_with_tokens_and_when_listed(container: Container) -> None:
    jwt = Jwt("https://login.harbour.example/pool-9")
    for allowed, wanted in (((), None), (("Authorization",), True)):
        async with rehearsal(container, auth=jwt, settings=FrontSettings(allow_list=allowed)) as caller:
            token = jwt.mint(caller.front.now())
            await caller.post(authorization=f"Bearer {token}")
        passed = container.posts[-1][0].get("authorization")
        assert passed == (f"Bearer {token}" if wanted else None)


@pytest.mark.req("AC-F-05")
@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "Transfer-Encoding",
        "Content-Length",
        "Content-Type",
        "Cookie",
        "Set-Cookie",
        "Access-Control-Request-Method",
        "Origin",
        "X-Forwarded-For",
        "Sec-WebSocket-Key",
        "X-Amz-Date",
        "X-Amzn-Trace-Id",
        "X-Amzn-Bedrock-AgentCore-Runtime-Session-Id",
        "X-Amzn-Bedrock-AgentCore-Runtime-Custom-",
        "1-Tenant",
        "-tenant",
        "x tenant",
        "",
        "ä-tenant",
    ],
)
def test_an_allow_list_that_the_service_refuses_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        check_allow_list([name])


@pytest.mark.req("AC-F-05")
def test_an_allow_list_has_twenty_names_at_most() -> None:
    names = [f"x-tenant-{number}" for number in range(20)]

    assert len(check_allow_list([*names[:19], "A2A-Version"])) == 20
    with pytest.raises(ConfigurationError, match="at most 20"):
        check_allow_list([*names, "A2A-Version"])


def test_a_front_stands_for_a_runtime() -> None:
    assert FrontSettings().arn == ARN
    assert (FrontSettings().region, FrontSettings().account) == ("eu-west-1", "111122223333")
    for arn in ("rehearsal", "arn:aws:lambda:eu-west-1:111122223333:function/x"):
        with pytest.raises(ConfigurationError):
            FrontSettings(arn=arn)


@pytest.mark.req("AC-F-14")
async def test_requests_are_kept_as_they_came_and_as_they_went_on(container: Container) -> None:
    async with rehearsal(container) as caller:
        await caller.post(rpc("GetTask", 7, id="t-1"), authorization="Bearer secret", a2a_version="1.0")
        await caller.post(b"{", session="short")

    first, second = caller.front.requests
    assert first.target.startswith("/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-west-1%3A111122223333%3Aruntime%2F")
    assert (first.method, first.rpc_method, first.rpc_id, first.status) == ("POST", "GetTask", 7, 200)
    assert (first.headers["a2a-version"], first.body_size) == ("1.0", len(rpc("GetTask", 7, id="t-1")))
    assert first.forwarded is not None
    assert first.forwarded.url == f"{container.url}/"
    assert "a2a-version" not in first.forwarded.headers
    assert (second.status, second.forwarded, second.rpc_method) == (400, None, "")
    assert "secret" not in repr(first)
    assert first.forwarded.headers["workloadaccesstoken"] not in repr(first)


@pytest.mark.req("AC-F-03")
async def test_stopping_needs_a_session_that_is_there(container: Container) -> None:
    async with rehearsal(container) as caller:
        await caller.post()
        answers = [await caller.stop(), await caller.stop(), await caller.stop(None)]

    assert [answer.status_code for answer in answers] == [200, 404, 400]
    assert answers[0].headers[SESSION_ID] == SESSION
    assert answers[1].json()["error"]["code"] == -32051
    assert [(ending.session, ending.why) for ending in caller.front.ends] == [(SESSION, "stopped")]
    assert json.loads(answers[0].content) == {}
