"""Ways to a token, against an authorization server that is a process of its own."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from dragoman.auth import (
    AuthorizationCode,
    BearerToken,
    ClientCredentials,
    DeviceCode,
    DevicePrompt,
    Discovery,
    MetadataError,
    TokenCache,
    TokenError,
)
from dragoman.auth.authorization_code import challenge_of
from dragoman.auth.schemes import SchemeUse, find_server, offered_flows
from dragoman.auth.sessions import InMemory
from dragoman.auth.token_endpoint import TokenSet
from dragoman.errors import DragomanError
from dragoman.http.client import HttpClient
from dragoman.model import SecurityScheme, decode_value
from tests.auth.provider import CLIENT, PUBLIC, SECRET, Provider

BOUND = 20.0
REFUSED = Discovery(error="invalid_token")


def scheme(value: dict[str, Any], *scopes: str) -> SchemeUse:
    return SchemeUse("corp", decode_value(SecurityScheme, value), scopes)


def oauth(provider: Provider, *flows: str, scopes: tuple[str, ...] = ("read",), **more: Any) -> SchemeUse:
    urls = {
        "tokenUrl": f"{provider.url}/token",
        "authorizationUrl": f"{provider.url}/authorize",
        "deviceAuthorizationUrl": f"{provider.url}/device",
        "scopes": {},
    }
    wanted = {
        "deviceCode": ("tokenUrl", "deviceAuthorizationUrl", "scopes"),
        "authorizationCode": ("tokenUrl", "authorizationUrl", "scopes"),
        "clientCredentials": ("tokenUrl", "scopes"),
    }
    made = {flow: {name: urls[name] for name in wanted[flow]} for flow in flows}
    return scheme({"oauth2SecurityScheme": {"flows": made, **more}}, *scopes)


def openid(provider: Provider, *scopes: str) -> SchemeUse:
    url = f"{provider.url}/.well-known/openid-configuration"
    return scheme({"openIdConnectSecurityScheme": {"openIdConnectUrl": url}}, *scopes)


def claims(token: BearerToken | None) -> dict[str, Any]:
    assert token is not None
    middle = token.value.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    return found


async def browse(url: str) -> None:
    """A browser: goes where it is sent, and back to the loopback address."""

    async def go() -> None:
        async with httpx2.AsyncClient(follow_redirects=True, timeout=10) as browser:
            await browser.get(url)

    browsers.append(asyncio.create_task(go()))


browsers: list[asyncio.Task[None]] = []


@pytest.mark.req("AUTH-04", "A2ACLI_AUTH_006")
async def test_client_credentials_go_where_the_cards_scheme_says(provider: Provider) -> None:
    source = ClientCredentials(CLIENT, SECRET, audience="x").for_scheme(oauth(provider, "clientCredentials"))

    token = await source.fetch(None)

    assert claims(token)["scope"] == "read"
    (asked,) = provider.log()
    assert (asked["token"], asked["form"]["audience"]) == ("client_credentials", "x")
    assert SECRET not in json.dumps(asked)


@pytest.mark.req("AUTH-04", "A2ACLI_AUTH_005")
async def test_a_device_is_allowed_by_somebody_elsewhere_in_the_servers_own_time(provider: Provider) -> None:
    provider.control(device=["authorization_pending", "slow_down", "authorization_pending"], interval=2)
    prompts: list[DevicePrompt] = []
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    source = DeviceCode(PUBLIC, prompts.append, sleep=sleep).for_scheme(oauth(provider, "deviceCode"))
    token = await source.fetch(None)

    assert claims(token)["sub"] == "ann"
    assert [(prompt.url, prompt.code) for prompt in prompts] == [(f"{provider.url}/activate", "KQZT-8842")]
    assert slept == [2, 2, 7, 7]
    assert len(provider.grants()) == 4


@pytest.mark.req("A2ACLI_AUTH_005")
@pytest.mark.parametrize("answer", ["access_denied", "expired_token"])
async def test_a_device_that_is_not_allowed_is_told_the_servers_word(provider: Provider, answer: str) -> None:
    provider.control(device=[answer])
    source = DeviceCode(PUBLIC, lambda prompt: None).for_scheme(oauth(provider, "deviceCode"))

    with pytest.raises(TokenError, match=answer):
        await source.fetch(None)


@pytest.mark.req("A2ACLI_AUTH_005")
async def test_a_device_gives_up_when_the_code_has_expired(provider: Provider) -> None:
    provider.control(device=["authorization_pending"] * 100, interval=5)
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    made = DeviceCode(PUBLIC, lambda prompt: None, sleep=sleep, now=lambda: now)

    with pytest.raises(TokenError, match="in time"):
        await made.for_scheme(oauth(provider, "deviceCode")).fetch(None)

    assert now == 55


@pytest.mark.req("AUTH-04", "SEC-06")
async def test_a_browser_login_uses_pkce_a_state_and_a_loopback_address(provider: Provider) -> None:
    source = AuthorizationCode(PUBLIC, open_url=browse).for_scheme(oauth(provider, "authorizationCode"))

    async with asyncio.timeout(BOUND):
        token = await source.fetch(None)

    assert claims(token)["scope"] == "read"
    asked, granted = provider.log()
    begun = asked["authorize"]
    assert (begun["code_challenge_method"], begun["response_type"]) == ("S256", "code")
    assert begun["redirect_uri"].startswith("http://127.0.0.1:")
    assert begun["code_challenge"] == challenge_of(granted["form"]["code_verifier"])
    assert len(begun["state"]) >= 40


@pytest.mark.req("AUTH-04")
@pytest.mark.parametrize(
    ("control", "word"), [({"deny": True}, "access_denied"), ({"iss": "https://evil.example"}, "issuer")]
)
async def test_a_browser_that_comes_back_without_a_login_ends_it(
    provider: Provider, control: dict[str, Any], word: str
) -> None:
    provider.control(**control)
    source = AuthorizationCode(PUBLIC, open_url=browse).for_scheme(openid(provider))

    with pytest.raises(TokenError, match=word):
        async with asyncio.timeout(BOUND):
            await source.fetch(None)

    assert provider.grants() == []


@pytest.mark.req("AUTH-04", "SEC-06")
async def test_what_others_send_to_the_loopback_address_is_not_taken(provider: Provider) -> None:
    answers: list[int] = []

    async def open_url(url: str) -> None:
        back = parse_qs(urlsplit(url).query)["redirect_uri"][0]
        async with httpx2.AsyncClient(timeout=10) as other:
            for query in (
                {"state": "guessed", "code": "theirs"},
                {"code": "theirs"},
                {"state": ["a", "a"], "code": "x"},
            ):
                answers.append((await other.get(f"{back}?{urlencode(query, doseq=True)}")).status_code)
            answers.append((await other.get(back.replace("/callback", "/else"))).status_code)
            answers.append((await other.post(back)).status_code)
        await browse(url)

    source = AuthorizationCode(PUBLIC, open_url=open_url).for_scheme(oauth(provider, "authorizationCode"))
    async with asyncio.timeout(BOUND):
        token = await source.fetch(None)

    assert answers == [400, 400, 400, 404, 404]
    assert token is not None
    assert provider.grants() == ["authorization_code"]


@pytest.mark.req("AUTH-04")
async def test_nobody_at_the_browser_ends_the_login(provider: Provider) -> None:
    made = AuthorizationCode(PUBLIC, open_url=lambda url: None, timeout=0.05)

    with pytest.raises(TokenError, match="in time"):
        await made.for_scheme(oauth(provider, "authorizationCode")).fetch(None)


@pytest.mark.req("A2ACLI_AUTH_010")
async def test_openid_connect_is_discovered_and_its_id_token_verified(provider: Provider) -> None:
    source = AuthorizationCode(PUBLIC, open_url=browse).for_scheme(openid(provider, "read"))

    async with asyncio.timeout(BOUND):
        token = await source.fetch(None)

    asked, _ = provider.log()
    assert asked["authorize"]["scope"] == "openid read"
    assert asked["authorize"]["nonce"]
    assert claims(token)["aud"] == "https://agent.example"  # the access token is what is sent


@pytest.mark.req("A2ACLI_AUTH_010")
@pytest.mark.parametrize(
    "control",
    [
        {"id_token": {"nonce": "of another login"}},
        {"id_token": {"aud": "another-client"}},
        {"id_token": {"aud": [PUBLIC, "another"]}},
        {"id_token": {"iss": "https://evil.example"}},
        {"id_token": {"exp": 1000}},
        {"id_token": {"azp": "another-client"}},
        {"forge": True},
    ],
)
async def test_an_id_token_of_another_login_ends_this_one(provider: Provider, control: dict[str, Any]) -> None:
    provider.control(**control)
    source = AuthorizationCode(PUBLIC, open_url=browse).for_scheme(openid(provider))

    with pytest.raises(TokenError):
        async with asyncio.timeout(BOUND):
            await source.fetch(None)


@pytest.mark.req("A2ACLI_AUTH_010")
async def test_keys_may_be_changed_between_logins(provider: Provider) -> None:
    made = AuthorizationCode(PUBLIC, open_url=browse)
    async with asyncio.timeout(BOUND):
        await made.for_scheme(openid(provider)).fetch(None)
        provider.control(new_key=True)
        again = AuthorizationCode(PUBLIC, open_url=browse)
        assert await again.for_scheme(openid(provider)).fetch(None) is not None


@pytest.mark.req("A2ACLI_AUTH_010", "AC-C-93")
async def test_metadata_that_names_another_issuer_is_refused(provider: Provider) -> None:
    provider.control(issuer="https://evil.example")
    source = AuthorizationCode(PUBLIC, open_url=browse).for_scheme(openid(provider))

    with pytest.raises(MetadataError):
        await source.fetch(None)


@pytest.mark.req("AUTH-04", "SEC-06")
async def test_a_token_is_refreshed_a_minute_before_it_expires(provider: Provider) -> None:
    now = 1_000_000.0
    prompts: list[DevicePrompt] = []
    made = DeviceCode(PUBLIC, prompts.append, sleep=_at_once, now=lambda: now)
    cache = TokenCache(made.for_scheme(oauth(provider, "deviceCode")), lambda: now)

    tokens = []
    for moment in (0, 3539, 3541, 3542):
        now = 1_000_000.0 + moment
        tokens.append(await cache.get())

    assert provider.grants() == ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]
    assert tokens[0] == tokens[1] != tokens[2] == tokens[3]
    assert len(prompts) == 1


@pytest.mark.req("AUTH-04", "AUTH-06", "SEC-06")
async def test_a_token_that_was_refused_is_refreshed_and_a_lost_login_asked_for_again(provider: Provider) -> None:
    prompts: list[DevicePrompt] = []
    source = DeviceCode(PUBLIC, prompts.append, sleep=_at_once).for_scheme(oauth(provider, "deviceCode"))
    cache = TokenCache(source)

    first = await cache.get()
    second = await cache.renew(REFUSED)
    provider.control(forget=True)
    third = await cache.renew(REFUSED)

    assert len({token.value for token in (first, second, third) if token}) == 3
    assert len(prompts) == 2


@pytest.mark.req("SEC-06")
async def test_many_that_need_a_token_make_one_request(provider: Provider) -> None:
    cache = TokenCache(
        DeviceCode(PUBLIC, lambda prompt: None, sleep=_at_once).for_scheme(oauth(provider, "deviceCode"))
    )

    found = await asyncio.gather(*(cache.get() for _ in range(20)))

    assert len({token.value for token in found if token}) == 1
    assert len(provider.grants()) == 1


@pytest.mark.req("SEC-06")
async def test_two_users_of_one_keeper_spend_a_refresh_token_once(provider: Provider) -> None:
    keeper = InMemory()
    made = DeviceCode(PUBLIC, lambda prompt: None, sleep=_at_once, keeper=keeper)
    one, other = (made.for_scheme(oauth(provider, "deviceCode")) for _ in range(2))
    await one.fetch(None)
    held = await keeper.load()
    assert held is not None
    await keeper.save(TokenSet(access_token="old", refresh_token=held.refresh_token, expires_at=1.0))

    found = await asyncio.gather(one.fetch(None), other.fetch(None))

    assert found[0] == found[1]
    assert provider.grants().count("refresh_token") == 1


@pytest.mark.req("SEC-06")
@pytest.mark.parametrize("when", ["while it is asked for", "while it is kept"])
async def test_who_gives_up_within_a_refresh_has_not_lost_the_login(provider: Provider, when: str) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(InMemory):
        async def save(self, tokens: TokenSet) -> None:
            begun.set()
            await go_on.wait()
            await super().save(tokens)

    class Told(httpx2.AsyncClient):
        async def send(self, *args: Any, **options: Any) -> httpx2.Response:
            begun.set()
            return await super().send(*args, **options)

    keeper = InMemory()
    made = DeviceCode(PUBLIC, lambda prompt: None, sleep=_at_once, keeper=keeper)
    await made.for_scheme(oauth(provider, "deviceCode")).fetch(None)
    held = await keeper.load()
    assert held is not None
    kept = Slow(TokenSet(access_token="old", refresh_token=held.refresh_token, expires_at=1.0))
    if when == "while it is asked for":
        go_on.set()
    async with Told() as http:
        source = DeviceCode(PUBLIC, lambda prompt: None, sleep=_at_once, keeper=kept, http=http)
        fetching = asyncio.create_task(source.for_scheme(oauth(provider, "deviceCode")).fetch(None))
        await asyncio.wait_for(begun.wait(), BOUND)

        fetching.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(fetching, BOUND)

    left = await kept.load()
    assert left is not None
    assert left.access_token != "old"
    assert left.refresh_token != held.refresh_token


@pytest.mark.req("AUTH-04", "AUTH-01")
@pytest.mark.parametrize("flow", ["deviceCode", "authorizationCode", "clientCredentials"])
async def test_no_secret_and_no_code_goes_over_an_open_line(flow: str) -> None:
    use = oauth(Provider("http://id.example"), flow)
    made = {
        "deviceCode": lambda: DeviceCode(CLIENT, lambda prompt: None).for_scheme(use),
        "authorizationCode": lambda: AuthorizationCode(CLIENT, open_url=lambda url: None).for_scheme(use),
        "clientCredentials": lambda: ClientCredentials(CLIENT, SECRET).for_scheme(use),
    }[flow]()

    with pytest.raises(MetadataError, match="not https"):
        await made.fetch(None)


@pytest.mark.req("AMB-71", "SEC-15")
async def test_servers_that_a_card_names_are_public_where_only_those_may_be_called(provider: Provider) -> None:
    from msgspec.structs import replace

    use = replace(oauth(provider, "clientCredentials"), allow_private=False)

    with pytest.raises(DragomanError, match="private"):
        await ClientCredentials(CLIENT, SECRET).for_scheme(use).fetch(None)

    assert provider.log() == []


@pytest.mark.req("AUTH-04", "SEC-05")
async def test_the_secret_goes_to_the_issuer_that_was_named_only(provider: Provider) -> None:
    use = oauth(provider, "clientCredentials")

    with pytest.raises(TokenError, match=r"other\.example"):
        await ClientCredentials(CLIENT, SECRET, issuer="https://other.example").for_scheme(use).fetch(None)

    assert provider.log() == []


@pytest.mark.req("A2ACLI_AUTH_010")
async def test_what_the_card_leaves_out_is_in_the_metadata_that_it_names(provider: Provider) -> None:
    place = f"{provider.url}/.well-known/oauth-authorization-server"
    use = oauth(provider, "clientCredentials", oauth2MetadataUrl=place)
    http = HttpClient()

    try:
        found = await find_server(http, use, "device")
    finally:
        await http.aclose()

    assert found.device_authorization_endpoint == f"{provider.url}/device"
    assert offered_flows(use.scheme) == ["client-credentials"]
    assert offered_flows(use.scheme, found) == ["device", "auth-code", "client-credentials"]


async def _at_once(seconds: float) -> None:
    return
