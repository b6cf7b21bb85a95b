"""The public card, health, and cross-origin requests."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.bindings.endpoint import Endpoint
from dragoman.bindings.settings import EndpointSettings
from dragoman.model import AgentCard, decode_json
from tests.bindings.parts import PARAMS, RecordingOperations, ask, card, endpoint, rpc

CARD = "/.well-known/agent-card.json"


@pytest.mark.req("CARD-01", "CARD-02", "CARD-18", "CARD-19", "CARD-20", "CARD-21", "AMB-75")
async def test_the_card_is_served_with_validators_and_a_time_to_live() -> None:
    answer = await ask(endpoint(card_max_age=60), "GET", CARD)
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    assert answer.header("cache-control") == "public, max-age=60"
    assert (answer.header("etag") or "").startswith('"')
    assert (answer.header("last-modified") or "").endswith("GMT")
    assert answer.header("content-length") == str(len(answer.body))
    assert decode_json(AgentCard, answer.body) == card("http://127.0.0.1:8000")


@pytest.mark.req("CARD-18", "CARD-20", "CARD-21")
async def test_a_conditional_request_for_the_same_card_is_304_without_a_body() -> None:
    app = endpoint()
    first = await ask(app, "GET", CARD)
    etag, modified = first.header("etag") or "", first.header("last-modified") or ""
    for headers in (
        {"If-None-Match": etag},
        {"If-None-Match": f'"other", W/{etag}'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": modified},
        {"If-None-Match": etag, "If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
    ):
        again = await ask(app, "GET", CARD, headers=headers)
        assert (again.status, again.body, again.header("etag")) == (304, b"", etag)
        assert again.header("content-length") is None
    for headers in (
        {"If-None-Match": '"other"'},
        {"If-None-Match": '"other"', "If-Modified-Since": modified},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
    ):
        assert (await ask(app, "GET", CARD, headers=headers)).status == 200


async def test_the_validator_follows_the_content() -> None:
    one = await ask(endpoint(), "GET", CARD)
    same = await ask(endpoint(), "GET", CARD)
    other = await ask(endpoint(public_url="https://agents.example"), "GET", CARD)
    assert one.header("etag") == same.header("etag") != other.header("etag")


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    app = endpoint()
    for path in (CARD, "/health"):
        got, head = await ask(app, "GET", path), await ask(app, "HEAD", path)
        assert (head.status, head.body, head.headers) == (200, b"", got.headers)


@pytest.mark.req("B131", "CARD-06")
async def test_the_base_url_is_set_or_the_servers_own_and_never_what_the_client_says() -> None:
    lies = {
        "Host": "evil.example",
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/evil",
        "Forwarded": "host=evil.example;proto=https",
    }

    async def url(app: Endpoint, **scope: object) -> str:
        path = f"{scope.get('root_path', '')}{CARD}"
        return (await ask(app, "GET", path, headers=lies, **scope)).json["supportedInterfaces"][0]["url"]

    assert await url(endpoint()) == "http://127.0.0.1:8000"
    assert await url(endpoint(), root_path="/agents/echo") == "http://127.0.0.1:8000/agents/echo"
    assert await url(endpoint(), scheme="https", server=("::1", 443)) == "https://[::1]"
    assert await url(endpoint(), server=None) == "http://localhost"
    assert await url(endpoint(), server=("/run/a2a.sock", None)) == "http://localhost"
    public = endpoint(public_url="https://agents.example/echo/")
    assert await url(public, root_path="/inner") == "https://agents.example/echo"


@pytest.mark.req("B133")
async def test_requests_under_different_prefixes_at_once_get_their_own_card() -> None:
    app = endpoint()

    async def check(prefix: str) -> None:
        answer = await ask(app, "GET", prefix + CARD, root_path=prefix)
        assert answer.json["supportedInterfaces"][0]["url"] == f"http://127.0.0.1:8000{prefix}"

    await asyncio.gather(*(check(f"/p{n % 100}") for n in range(1000)))


async def test_a_card_is_encoded_once_for_each_base_url() -> None:
    built: list[str] = []

    def build(base_url: str) -> AgentCard:
        built.append(base_url)
        return card(base_url)

    app = Endpoint(RecordingOperations(), card=build, settings=EndpointSettings())
    for _ in range(3):
        await ask(app, "GET", CARD)
    assert built == ["http://127.0.0.1:8000"]


async def test_health_says_ok_until_the_server_is_stopping() -> None:
    healthy = [True]
    app = endpoint(healthy=lambda: healthy[0])
    up = await ask(app, "GET", "/health")
    assert (up.status, up.json) == (200, {"status": "ok"})
    healthy[0] = False
    down = await ask(app, "GET", "/health")
    assert (down.status, down.json) == (503, {"status": "stopping"})
    assert (await ask(endpoint(), "GET", "/health")).status == 200


PAGE = {"Origin": "https://page.example"}
PREFLIGHT = {**PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "a2a-version"}


@pytest.mark.req("B177")
async def test_cross_origin_headers_are_off_by_default() -> None:
    for method, path, body in (("OPTIONS", "/", ""), ("POST", "/", rpc()), ("GET", CARD, "")):
        answer = await ask(endpoint(), method, path, body, headers=PREFLIGHT)
        assert not [name for name, _ in answer.headers if name.startswith("access-control") or name == "vary"]


@pytest.mark.req("B177")
@pytest.mark.parametrize("path", ["/", "/message:send", "/tasks/t:subscribe", CARD])
async def test_a_preflight_of_an_allowed_page_is_told_what_it_may_send(path: str) -> None:
    answer = await ask(endpoint(cors=("https://page.example",)), "OPTIONS", path, headers=PREFLIGHT)
    assert (answer.status, answer.header("access-control-allow-origin")) == (204, "https://page.example")
    allowed = (answer.header("access-control-allow-headers") or "").lower().split(", ")
    assert {"a2a-version", "a2a-extensions", "authorization", "content-type", "last-event-id"} <= set(allowed)
    assert {"GET", "POST", "DELETE"} <= set((answer.header("access-control-allow-methods") or "").split(", "))
    assert answer.header("vary") == "Origin"


@pytest.mark.req("B177")
async def test_an_allowed_page_may_read_answers_errors_and_streams() -> None:
    app = endpoint(cors=("https://page.example",))
    for method, path, body in (
        ("POST", "/", rpc()),
        ("POST", "/", "broken"),
        ("GET", "/nothing", ""),
        ("GET", CARD, ""),
        ("POST", "/message:stream", PARAMS),
    ):
        answer = await ask(app, method, path, body, headers=PAGE)
        assert answer.header("access-control-allow-origin") == "https://page.example"
        exposed = (answer.header("access-control-expose-headers") or "").split(", ")
        assert {"A2A-Extensions", "WWW-Authenticate", "Retry-After", "ETag"} <= set(exposed)


@pytest.mark.req("B177")
async def test_another_page_is_not_allowed_and_a_star_allows_every_page() -> None:
    headers = {**PREFLIGHT, "Origin": "https://evil.example"}
    some, every = endpoint(cors=("https://page.example",)), endpoint(cors=("*",))
    for method, body in (("OPTIONS", ""), ("POST", rpc())):
        refused = await ask(some, method, "/", body, headers=headers)
        assert refused.header("access-control-allow-origin") is None
        assert refused.header("vary") == "Origin"
        assert (await ask(every, method, "/", body, headers=headers)).header("access-control-allow-origin") == "*"
