"""Keys, passwords and certificates; alternatives and combinations; skills. Spec: §4.5, §7.4."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import Agent, App, Caller
from dragoman.auth import ApiKeys, JwtBearer, MutualTls, OAuth2, Passwords, RefusedError, Scheme, Security, Throttle
from dragoman.auth.server import Guard
from dragoman.auth.server.bearer import BearerScheme
from dragoman.card import check_card
from dragoman.errors import (
    ConfigurationError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)
from dragoman.model import (
    AgentCard,
    AgentSkill,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    ImplicitOAuthFlow,
    OAuth2SecurityScheme,
    OAuthFlows,
    PasswordOAuthFlow,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from tests.grpc.certificates import Authority
from tests.identity.parts import KEY, bearer, token, tokens, whoami

KEYS = ApiKeys({"ann": "key of ann", "bob": ["old key of bob", "new key of bob"]}, scopes={"ann": ["ask"]})


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def scope(headers: dict[str, str] | Sequence[tuple[str, str]] = (), **more: Any) -> dict[str, Any]:
    pairs = headers.items() if isinstance(headers, dict) else headers
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
    given = {"type": "http", "scheme": "http", "path": "/", "query_string": b"", "client": ("192.0.2.7", 4000)}
    return {**given, "headers": raw, **more}


def guard(given: Scheme | Security, **settings: Any) -> Guard:
    security = given if isinstance(given, Security) else Security({given.kind: given}, **settings)
    return Guard(security, name="Whoami", public_url="https://agent.example")


@pytest.mark.req("AUTH-05", "SEC-16", "SEC-06")
async def test_a_key_in_a_header_says_who_calls(enter: Any) -> None:
    agent = whoami(security=KEYS)
    ann = await enter(agent, {"X-API-Key": "key of ann"})
    bob = await enter(agent, {"X-API-Key": "new key of bob"})
    eve = await enter(agent, {"X-API-Key": "key of eve"})

    assert (await ann.run("hello")).text == "ann|ask"
    assert (await bob.run("hello")).text == "bob|"
    with pytest.raises(UnauthenticatedError):
        await eve.run("hello")


@pytest.mark.req("AUTH-05", "SEC-16")
async def test_a_name_and_a_password_say_who_calls(enter: Any) -> None:
    agent = whoami(security=Passwords({"ann": "söcret: with a colon"}))
    ann = await enter(agent, basic("ann", "söcret: with a colon"))
    eve = await enter(agent, basic("ann", "guess"))

    assert (await ann.run("hello")).text == "ann|"
    with pytest.raises(UnauthenticatedError):
        await eve.run("hello")


@pytest.mark.parametrize("text", ["", "Basic", "Basic !!!", "Basic YW5u", "Basic OnB3", "Basic YW5uOg==", "Bearer x"])
async def test_what_is_no_name_and_password_is_refused(text: str) -> None:
    with pytest.raises(UnauthenticatedError) as raised:
        await guard(Passwords({"ann": "pw"})).identify(scope({"Authorization": text}))

    assert raised.value.metadata["challenge"] == 'Basic realm="Whoami", charset="UTF-8"'


async def test_keys_may_come_in_the_query_or_a_cookie() -> None:
    by_query = guard(ApiKeys({"ann": "s3cret&"}, name="key", location="query"))
    by_cookie = guard(ApiKeys({"ann": "s3cret"}, name="key", location="cookie"))

    assert (await by_query.identify(scope(query_string=b"a=1&key=s3cret%26"))).id == "ann"
    assert (await by_cookie.identify(scope({"Cookie": "theme=dark; key=s3cret"}))).id == "ann"
    with pytest.raises(UnauthenticatedError):
        await by_query.identify(scope({"key": "s3cret&"}))


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example", "Host": "agent.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}],
)
async def test_a_page_of_another_origin_may_not_use_a_cookie(headers: dict[str, str]) -> None:
    by_cookie = guard(ApiKeys({"ann": "s3cret"}, name="key", location="cookie"))

    with pytest.raises(UnauthenticatedError):
        await by_cookie.identify(scope({"Cookie": "key=s3cret", **headers}))


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key"])
async def test_a_header_that_came_twice_is_refused(name: str) -> None:
    both = guard(Security({"key": KEYS, "token": tokens()}))
    first, second = (bearer(token())["Authorization"], "Bearer x") if name == "Authorization" else ("key of ann", "x")

    with pytest.raises(UnauthenticatedError):
        await both.identify(scope([(name, first), (name, second)]))


async def test_keys_and_passwords_may_be_looked_up_elsewhere() -> None:
    async def owner(key: str) -> Caller | None:
        return Caller(id="ann", scopes=frozenset({"ask"})) if key == "k" else None

    def check(name: str, password: str) -> bool:
        return (name, password) == ("bob", "pw")

    assert (await ApiKeys(owner).verify("k")).scopes == {"ask"}
    assert (await Passwords(check).verify(base64.b64encode(b"bob:pw").decode())).id == "bob"
    with pytest.raises(RefusedError):
        await ApiKeys(owner).verify("x")
    with pytest.raises(RefusedError):
        await Passwords(check).verify(base64.b64encode(b"bob:no").decode())


@pytest.mark.req("SEC-05")
async def test_no_secret_is_shown_or_kept_in_clear() -> None:
    schemes = [ApiKeys({"ann": "hunter2-key"}), Passwords({"ann": "hunter2-key"})]

    shown = repr(schemes) + repr([vars(scheme) for scheme in schemes]) + repr(Security({"key": schemes[0]}))

    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "make",
    [
        lambda: ApiKeys({"ann": ""}),
        lambda: ApiKeys({"ann": "k", "bob": "k"}),
        lambda: ApiKeys({"ann": "k"}, location="body"),  # type: ignore[arg-type]
        lambda: ApiKeys({"ann": "k"}, name="with blank"),
        lambda: Passwords({"a:b": "p"}),
        lambda: Security({}),
        lambda: Security({"key": KEYS}, require=["token"]),
        lambda: Security({"key": KEYS}, require=[{"key": "ask"}]),
        lambda: Security({"key": KEYS}, skills={"x": ["token"]}),
        lambda: Security({"cert": MutualTls(header="Client-Cert")}),
        lambda: Security({"key": KEYS}, proxies=["not an address"]),
        lambda: whoami(security="key"),
    ],
)
def test_what_could_not_work_is_refused_at_once(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()


# Alternatives and combinations.


@pytest.mark.req("DATA-36", "AUTH-05", "SEC-16")
async def test_any_one_of_several_alternatives_will_do(enter: Any) -> None:
    agent = whoami(security=[KEYS, tokens(), Passwords({"pat": "pw"})])

    for headers, id in (({"X-API-Key": "key of ann"}, "ann"), (bearer(token()), "https://id.example#ann")):
        assert (await (await enter(agent, headers)).run("hello")).text.split("|")[0] == id
    assert (await (await enter(agent, basic("pat", "pw"))).run("hello")).text == "pat|"
    with pytest.raises(UnauthenticatedError):
        await (await enter(agent)).run("hello")


@pytest.mark.req("DATA-36", "AUTH-05", "SEC-16")
async def test_schemes_of_one_requirement_are_needed_together(enter: Any) -> None:
    agent = whoami(security=Security({"key": KEYS, "token": tokens()}, require=[{"token": ["look"], "key": ["ask"]}]))
    good, key = bearer(token(scope="look")), {"X-API-Key": "key of ann"}
    both, other = await enter(agent, {**good, **key}), await enter(agent, {**good, "X-API-Key": "new key of bob"})

    assert (await both.run("hello")).text == "https://id.example#ann|ask look"
    with pytest.raises(PermissionDeniedError):
        await other.run("hello")
    for half in (good, key):
        with pytest.raises(UnauthenticatedError):
            await (await enter(agent, half)).run("hello")


async def test_credentials_may_be_optional_but_bad_ones_are_refused() -> None:
    either = guard(Security({"key": KEYS}, require=["key", {}]))

    assert (await either.identify(scope())).is_anonymous
    assert (await either.identify(scope({"X-API-Key": "key of ann"}))).id == "ann"
    with pytest.raises(UnauthenticatedError):
        await either.identify(scope({"X-API-Key": "nonsense"}))


async def test_a_bad_credential_does_not_spoil_another_alternative() -> None:
    both = guard(Security({"token": tokens(), "key": KEYS}))

    assert (await both.identify(scope({"X-API-Key": "key of ann", **bearer("expired")}))).id == "ann"


@pytest.mark.req("AUTH-06", "AMB-34")
async def test_the_challenge_names_every_scheme_and_what_was_wrong() -> None:
    security = Security(
        {"token": tokens(), "key": KEYS, "basic": Passwords({"p": "p"})},
        require=[{"token": ["look", "ask"]}, "key", "basic"],
        realm='The "best"',
    )

    with pytest.raises(UnauthenticatedError) as raised:
        await guard(security).identify(scope(bearer("x.y.z")))

    assert raised.value.metadata["challenge"] == (
        'Bearer realm="The \\"best\\"", error="invalid_token", error_description="The token cannot be read", '
        'scope="ask look", resource_metadata="https://agent.example/.well-known/oauth-protected-resource", '
        'ApiKey realm="The \\"best\\"", in="header", name="X-API-Key", '
        'Basic realm="The \\"best\\"", charset="UTF-8"'
    )


async def test_without_credentials_the_challenge_names_no_error() -> None:
    with pytest.raises(UnauthenticatedError) as raised:
        await guard(tokens()).identify(scope())

    assert "error" not in raised.value.metadata["challenge"]


# Skills.

SKILLS = [AgentSkill(id=id, name=id, description=id, tags=[id]) for id in ("look", "refund")]


def desk() -> Agent:
    security = Security(
        {"token": tokens()},
        skills={"refund": [{"token": ["refund"]}]},
        skill_of=lambda request: (request.metadata or {}).get("skill"),
    )
    return whoami(security=security, skills=SKILLS)


@pytest.mark.req("CARD-16", "AUTH-07", "AUTH-12", "ERR-04")
async def test_a_skill_may_need_more_than_the_agent_does(enter: Any) -> None:
    agent = desk()
    poor, rich = await enter(agent, bearer(token())), await enter(agent, bearer(token(scope="refund")))

    assert (await poor.run("hello", metadata={"skill": "look"})).ok
    assert (await rich.run("hello", metadata={"skill": "refund"})).ok
    with pytest.raises(PermissionDeniedError) as raised:
        await poor.run("hello", metadata={"skill": "refund"})
    assert "refund" in str(raised.value) or "ermission" in str(raised.value)


@pytest.mark.req("CARD-16", "DATA-36")
def test_the_card_tells_what_a_skill_needs() -> None:
    card = App(desk()).card("https://agent.example")

    assert card.skills[1].security_requirements == [SecurityRequirement(schemes={"token": StringList(list=["refund"])})]
    assert card.skills[0].security_requirements == []


@pytest.mark.req("AUTH-05")
@pytest.mark.parametrize(
    "settings",
    [
        {
            "skills": [
                AgentSkill(
                    id="x",
                    name="x",
                    description="x",
                    tags=["x"],
                    security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
                )
            ]
        },
        {"skills": SKILLS, "security": Security({"key": KEYS}, skills={"refund": ["key"]})},
        {"skills": SKILLS, "security": Security({"key": KEYS}, skills={"other": ["key"]}, skill_of=lambda _: None)},
    ],
    ids=["no verifier", "nobody tells the skill", "no such skill"],
)
def test_a_card_that_declares_what_nobody_enforces_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        App(whoami(**settings))


def test_a_handler_can_ask_what_its_caller_may() -> None:
    security = Security({"key": KEYS}, skills={"refund": [{"key": ["ask"]}]})

    assert security.permits(Caller(id="ann", granted={"key": frozenset({"ask"})}), "refund")
    assert not security.permits(Caller(id="bob", granted={"key": frozenset()}), "refund")
    assert security.permits(Caller(), "anything else")


# Certificates.

ROOT = Authority("Test root")


@pytest.mark.req("DATA-32", "AUTH-05")
async def test_a_proxy_that_is_named_may_send_the_certificate_on_and_nobody_else() -> None:
    pem = ROOT.sign("ann.example").certificate.decode()
    der = "".join(pem.strip().splitlines()[1:-1])
    behind = guard(MutualTls(header="Client-Cert"), proxies=["10.0.0.0/8"])
    for value in (f":{der}:", pem.replace("\n", "%0A").replace("+", "%2B").replace(" ", "%20")):
        found = await behind.identify(scope({"Client-Cert": value}, client=("10.1.2.3", 1)))
        assert found.id == "CN=ann.example"
        assert found.claims["dns_names"] == ["ann.example"]
        with pytest.raises(UnauthenticatedError):
            await behind.identify(scope({"Client-Cert": value}, client=("192.0.2.1", 1)))
    for broken in (":!!:", "-----BEGIN CERTIFICATE-----", ":AAAA:", "x"):
        with pytest.raises(UnauthenticatedError):
            await behind.identify(scope({"Client-Cert": broken}, client=("10.1.2.3", 1)))


async def test_the_certificate_of_the_proxy_itself_is_nobodys() -> None:
    pem = ROOT.sign("proxy.example").certificate.decode()
    behind = guard(MutualTls(header="Client-Cert"), proxies=["10.0.0.0/8"])

    with pytest.raises(UnauthenticatedError):
        await behind.identify(scope(client=("10.1.2.3", 1), extensions={"tls": {"client_cert_chain": [pem]}}))


async def test_a_certificate_that_the_server_could_not_verify_does_not_count() -> None:
    pem = ROOT.sign("ann.example").certificate.decode()
    tls = {"client_cert_chain": [pem], "client_cert_error": "unknown authority"}

    with pytest.raises(UnauthenticatedError):
        await guard(MutualTls()).identify(scope(extensions={"tls": tls}))


async def test_what_a_proxy_says_of_addresses_is_believed_of_named_proxies_only() -> None:
    open_door = guard(Security({"key": KEYS}, require=[], proxies=["10.0.0.0/8"]))
    forwarded = {"X-Forwarded-For": "203.0.113.9, 198.51.100.4, 10.0.0.9"}

    assert (await open_door.identify(scope(forwarded, client=("10.0.0.1", 1)))).address == "198.51.100.4"
    assert (await open_door.identify(scope(forwarded))).address == "192.0.2.7"


@pytest.mark.parametrize(
    ("hop", "address"),
    [("198.51.100.4:55012", "198.51.100.4"), ("[2001:db8::7]:443", "2001:db8::7"), ("2001:db8::7", "2001:db8::7")],
)
@pytest.mark.req("SEC-07", "SEC-10")
async def test_the_port_of_a_connection_is_no_part_of_the_address(hop: str, address: str) -> None:
    open_door = guard(Security({"key": KEYS}, require=[], proxies=["10.0.0.0/8"]))

    caller = await open_door.identify(scope({"X-Forwarded-For": f"{hop}, 10.0.0.9:443"}, client=("10.0.0.1", 1)))

    assert caller.address == address


# What a card may not say.


def card_with(scheme: SecurityScheme) -> AgentCard:
    card = App(whoami()).card("https://agent.example")
    card.security_schemes = {"it": scheme}
    return card


def flows(**given: Any) -> SecurityScheme:
    return SecurityScheme(oauth2_security_scheme=OAuth2SecurityScheme(flows=OAuthFlows(**given)))


URL, NO_URL = "https://id.example/x", "id.example/x"


@pytest.mark.req("DATA-32", "DATA-33", "DATA-34")
@pytest.mark.parametrize(
    ("scheme", "field"),
    [
        (SecurityScheme(), "securitySchemes.it"),
        (flows(), "flows"),
        (flows(implicit=ImplicitOAuthFlow(authorization_url=NO_URL, scopes={})), "authorizationUrl"),
        (flows(implicit=ImplicitOAuthFlow(authorization_url="", scopes={})), "authorizationUrl"),
        (flows(password=PasswordOAuthFlow(token_url=NO_URL, scopes={})), "tokenUrl"),
        (flows(password=PasswordOAuthFlow(token_url=URL, refresh_url=NO_URL, scopes={})), "refreshUrl"),
        (
            SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="body", name="k")),
            "location",
        ),
        (SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="")), "scheme"),
    ],
)
def test_a_scheme_that_is_none_is_refused(scheme: SecurityScheme, field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        check_card(card_with(scheme))


@pytest.mark.req("DATA-34")
def test_a_deprecated_flow_may_have_no_scopes() -> None:
    check_card(card_with(flows(implicit=ImplicitOAuthFlow(authorization_url=URL, refresh_url=URL, scopes={}))))


@pytest.mark.req("DATA-33")
def test_deprecated_flows_are_not_served_and_two_flows_cannot_be_said() -> None:
    with pytest.raises(ConfigurationError):
        OAuth2(ImplicitOAuthFlow(authorization_url=URL, scopes={}), tokens())  # type: ignore[arg-type]
    two = flows(
        implicit=ImplicitOAuthFlow(authorization_url=URL, scopes={}),
        password=PasswordOAuthFlow(token_url=URL, scopes={}),
    )
    with pytest.raises(ConfigurationError, match="one flow, not 2"):
        check_card(card_with(two))


class Down(BearerScheme):
    """Tokens of which nothing can be told now."""

    def declare(self) -> SecurityScheme:
        return SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))

    async def verify(self, credential: str) -> Caller:
        raise UnavailableError("The credentials cannot be verified now")


async def test_what_cannot_be_verified_now_spoils_no_other_alternative_and_is_no_refusal() -> None:
    some = guard(Security({"down": Down(), "key": KEYS}, require=["down", "key", {}]))

    assert (await some.identify(scope({"X-API-Key": "key of ann", **bearer("x")}))).id == "ann"
    with pytest.raises(UnavailableError):
        await some.identify(scope(bearer("x")))
    assert (await some.identify(scope())).is_anonymous


async def test_a_token_that_one_of_two_schemes_takes_is_no_failure() -> None:
    keys = {"keys": [KEY.as_dict(private=False)]}
    other = JwtBearer("https://other.example", "agents", keys=keys)
    both = guard(Security({"other": other, "token": tokens()}, throttle=Throttle(attempts=1)))

    for _ in range(5):
        assert (await both.identify(scope(bearer(token())))).id == "https://id.example#ann"


async def test_a_key_of_ones_own_does_not_let_one_guess_the_passwords_of_others() -> None:
    security = Security(
        {"basic": Passwords({"ann": "pw"}), "key": KEYS}, throttle=Throttle(attempts=3), require=["basic", "key"]
    )
    both = guard(security)
    own = {"X-API-Key": "new key of bob"}

    for number in range(3):
        assert (await both.identify(scope({**own, **basic("ann", f"guess {number}")}))).id == "bob"
    with pytest.raises(RateLimitedError):
        await both.identify(scope({**own, **basic("ann", "pw")}))
