"""The client shows who calls, on every binding in the same way. Spec: §7.3, AUTH-04."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import Agent, Caller
from dragoman.auth import ApiKey, Basic, BearerToken, Discovery
from dragoman.errors import ConfigurationError, UnauthenticatedError
from dragoman.http.asgi import Headers
from tests.conformance.conftest import Connect


class Door:
    """Knows callers by a header, and counts who came."""

    def __init__(self, header: str = "authorization", *good: str) -> None:
        self.header = header
        self.good = set(good)
        self.seen: list[str] = []

    async def __call__(self, scope: Any) -> Caller:
        given = Headers(scope["headers"]).get(self.header, "")
        self.seen.append(given)
        if given not in self.good:
            raise UnauthenticatedError("Who are you?")
        return Caller(id=given)


class Source:
    """Gives one token after the other; the next one after a refusal, or when the last one expired."""

    def __init__(self, *tokens: BearerToken) -> None:
        self.tokens = list(tokens)
        self.asked: list[bool] = []

    async def fetch(self, discovery: Discovery | None) -> BearerToken | None:
        self.asked.append(discovery is not None)
        return self.tokens.pop(0) if self.tokens else None


def lasting(*texts: str) -> Source:
    return Source(*(BearerToken(text, 4_000_000_000.0) for text in texts))


def make_agent() -> Agent:
    agent = Agent("Clerk", description="Says who called.")

    @agent.task
    async def work(ctx):  # type: ignore[no-untyped-def]
        return f"for {ctx.caller.id}"

    return agent


@pytest.fixture
def store() -> str:
    return "memory"


@pytest.mark.req("AUTH-04", "PARAM-05", "PARAM-06", "BIND-05", "GRPC-05")
@pytest.mark.parametrize(
    ("credentials", "header", "sent"),
    [
        ("t-1", "authorization", "Bearer t-1"),
        (lambda: "t-2", "authorization", "Bearer t-2"),
        (Basic("ann", "pä:ss"), "authorization", "Basic YW5uOnDDpDpzcw=="),
        (ApiKey("k-1", header="X-Corp-Key"), "x-corp-key", "k-1"),
        ([ApiKey("k-1", header="X-Corp-Key"), "t-1"], "x-corp-key", "k-1"),
    ],
)
async def test_credentials_go_with_every_call(connect: Connect, credentials: Any, header: str, sent: str) -> None:
    door = Door(header, sent)
    client = await connect(make_agent(), identify=door, client_settings={"credentials": credentials})

    result = await client.run("hello")
    assert result.task is not None
    task = await client.get_task(result.task.id)

    assert task.artifacts[0].parts[0].text == f"for {sent}"
    assert set(door.seen) == {sent}


@pytest.mark.req("AUTH-04", "AUTH-06", "SEC-06")
async def test_a_call_that_is_refused_is_made_once_more_with_another_token(connect: Connect) -> None:
    door, source = Door("authorization", "Bearer new"), lasting("old", "new")
    client = await connect(make_agent(), identify=door, client_settings={"credentials": source})

    result = await client.run("hello")

    assert result.task is not None
    assert result.task.artifacts[0].parts[0].text == "for Bearer new"
    assert door.seen[:2] == ["Bearer old", "Bearer new"]
    assert source.asked == [False, True]


@pytest.mark.req("AUTH-04", "AUTH-06")
async def test_a_call_is_not_made_a_third_time(connect: Connect) -> None:
    door, source = Door(), lasting("one", "two", "three")
    client = await connect(make_agent(), identify=door, client_settings={"credentials": source})

    with pytest.raises(UnauthenticatedError):
        await client.send("hello")

    assert door.seen == ["Bearer one", "Bearer two"]


@pytest.mark.req("AUTH-04", "AUTH-06")
async def test_a_token_that_there_is_no_other_for_is_shown_once(connect: Connect) -> None:
    door = Door()
    client = await connect(make_agent(), identify=door, client_settings={"credentials": "fixed"})

    with pytest.raises(UnauthenticatedError):
        await client.send("hello")

    assert door.seen == ["Bearer fixed"]


@pytest.mark.req("AUTH-04", "SEC-06")
async def test_a_stream_is_opened_with_the_token_of_its_time(connect: Connect) -> None:
    door = Door("authorization", "Bearer b")
    client = await connect(make_agent(), identify=door, client_settings={"credentials": lasting("a", "b")})

    events = [event async for event in client.stream("hello")]

    assert events
    assert door.seen[-1] == "Bearer b"


@pytest.mark.req("AUTH-04", "PARAM-07")
async def test_what_one_call_says_comes_first(connect: Connect) -> None:
    door = Door("authorization", "Bearer mine", "Bearer own")
    client = await connect(make_agent(), identify=door, client_settings={"credentials": "own"})

    await client.send("hello", headers={"Authorization": "Bearer mine"})
    await client.send("hello")

    assert list(dict.fromkeys(door.seen)) == ["Bearer mine", "Bearer own"]


@pytest.mark.req("AUTH-04")
async def test_two_credentials_for_one_place_are_refused(connect: Connect) -> None:
    settings = {"credentials": "one", "headers": {"authorization": "Bearer two"}}

    with pytest.raises(ConfigurationError, match="authorization"):
        await connect(make_agent(), client_settings=settings)


@pytest.mark.req("SEC-05", "SEC-09")
def test_credentials_are_never_shown() -> None:
    from dragoman.auth import ClientCertificate, ClientCredentials

    held: Sequence[Any] = [
        ApiKey("s3cret"),
        Basic("ann", "s3cret"),
        BearerToken("s3cret"),
        ClientCredentials("id", "s3cret"),
        ClientCertificate(certificate=b"s3cret", key=b"s3cret"),
    ]

    assert "s3cret" not in repr(held)
