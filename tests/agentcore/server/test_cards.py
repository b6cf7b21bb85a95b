"""The card of a hosted agent."""

from __future__ import annotations

import hashlib
import json
import logging
from importlib.resources import files
from pathlib import Path

import jsonschema
import msgspec
import pytest

from dragoman import Agent, agentcore
from dragoman.agentcore.address import public_address
from dragoman.agentcore.cards import SIGV4
from dragoman.card import CardSigner, SignaturePolicy, TrustStore, verify_card
from dragoman.errors import ConfigurationError
from dragoman.jose.keys import new_key
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    encode_json,
)
from tests.agentcore.server.hosts import calling, echo, hosted, post, rpc, served

PATH = "/.well-known/agent-card.json"
PUBLIC = "https://bedrock-agentcore.eu-west-1.amazonaws.com/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aruntime%2Ftide/invocations/"


def own_card(*interfaces: tuple[str, str, str]) -> AgentCard:
    """A card as an author may write it: (URL, binding, version) of each interface."""
    entries = [AgentInterface(url=u, protocol_binding=b, protocol_version=v) for u, b, v in interfaces]
    return AgentCard(
        name="tide-desk",
        description="Tides",
        version="2.4.0",
        supported_interfaces=entries,
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="next", name="Next", description="Next high water", tags=["tides"])],
    )


async def card_of(app) -> dict:
    async with calling(app) as client:
        answer = await client.get(PATH)
        assert answer.status_code == 200
        return answer.json()


def urls(card: dict) -> set[str]:
    """Every address on a card."""
    found = {entry["url"] for entry in card["supportedInterfaces"]} | {card["url"]}
    return found | {entry["url"] for entry in card.get("additionalInterfaces", [])}


@pytest.mark.req("AC-S-30", "AC-S-32")
@pytest.mark.parametrize(
    ("argument", "variable", "written", "expected"),
    [
        ("https://a.example/x", "https://b.example/y", "https://c.example/z", "https://a.example/x/"),
        (None, "https://b.example/y", "https://c.example/z", "https://b.example/y/"),
        (None, None, "https://c.example/z", "https://c.example/z/"),
        (None, None, None, "http://container:9000/"),
        (None, "  ", None, "http://container:9000/"),
    ],
)
async def test_the_first_address_that_is_known_is_on_all_interfaces(argument, variable, written, expected):
    card = own_card((written, "JSONRPC", "1.0"), (written, "JSONRPC", "0.3")) if written else None
    environment = {} if variable is None else {"AGENTCORE_RUNTIME_URL": variable}
    found = await card_of(hosted(card=card, public_url=argument, environment=environment))
    assert urls(found) == {expected}


@pytest.mark.req("AC-S-30", "B165")
async def test_without_a_public_address_the_card_follows_the_port():
    async with served(hosted()) as client:
        card = (await client.get(PATH)).json()
        assert urls(card) == {str(client.base_url).rstrip("/") + "/"}


@pytest.mark.req("AC-S-31")
async def test_a_card_of_the_authors_keeps_its_address_and_is_not_changed():
    card = own_card((PUBLIC, "JSONRPC", "1.0"), (PUBLIC, "HTTP+JSON", "1.0"))
    before = encode_json(card)
    found = await card_of(hosted(card=card, auth="sigv4"))
    assert urls(found) == {PUBLIC}
    assert encode_json(card) == before
    other = await card_of(hosted(card=card, public_url="https://other.example"))
    assert urls(other) == {"https://other.example/"}
    assert encode_json(card) == before


@pytest.mark.req("AC-S-32")
async def test_the_extended_card_gets_the_same_address():
    class Extended:
        def __init__(self, operations):
            self._operations = operations

        async def call(self, op, request, context):
            if op is GET_EXTENDED_AGENT_CARD:
                return own_card(("http://localhost:1/", "JSONRPC", "1.0"), ("http://localhost:1/", "JSONRPC", "0.3"))
            return await self._operations.call(op, request, context)

        async def stream(self, op, request, context):
            return await self._operations.stream(op, request, context)

    async with calling(hosted(public_url=PUBLIC, interceptors=[Extended])) as client:
        card = (await post(client, rpc("GetExtendedAgentCard")))["result"]
        assert {entry["url"] for entry in card["supportedInterfaces"]} == {PUBLIC}


@pytest.mark.req("AC-S-33")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://h/runtimes/arn%3Aaws/invocations", "https://h/runtimes/arn%3Aaws/invocations/"),
        ("https://h/runtimes/arn%3Aaws/invocations/", "https://h/runtimes/arn%3Aaws/invocations/"),
        ("https://h/x//", "https://h/x/"),
        ("https://h", "https://h/"),
        ("https://h/x?qualifier=DEFAULT", "https://h/x/?qualifier=DEFAULT"),
        ("https://h/x/?qualifier=a%2Fb/", "https://h/x/?qualifier=a%2Fb/"),
    ],
)
def test_an_address_ends_with_one_slash_before_its_query(given: str, expected: str):
    assert public_address(given) == expected


@pytest.mark.parametrize("given", ["localhost:9000", "ftp://h/", "/x", ""])
def test_what_is_no_address_is_refused(given: str):
    with pytest.raises(ConfigurationError):
        public_address(given)


@pytest.mark.req("AC-S-34")
async def test_the_card_is_for_both_generations():
    card = await card_of(hosted(public_url=PUBLIC))
    assert (card["url"], card["protocolVersion"], card["preferredTransport"]) == (PUBLIC, "0.3.0", "JSONRPC")
    assert [entry["protocolVersion"] for entry in card["supportedInterfaces"]] == ["1.0", "0.3"]
    assert card["additionalInterfaces"] == [{"url": PUBLIC, "transport": "JSONRPC"}]


@pytest.mark.req("AC-S-34")
async def test_a_card_of_one_generation_is_made_one_of_both():
    card = await card_of(hosted(card=own_card((PUBLIC, "jsonrpc", "1.0"))))
    assert [entry["protocolVersion"] for entry in card["supportedInterfaces"]] == ["1.0", "0.3"]
    assert card["url"] == PUBLIC


@pytest.mark.req("AC-S-35")
@pytest.mark.parametrize(
    ("auth", "flat", "wrapped"),
    [
        ("sigv4", {"type": "http", "scheme": SIGV4}, ("httpAuthSecurityScheme", {"scheme": SIGV4})),
        (
            "bearer",
            {"type": "http", "scheme": "Bearer"},
            ("httpAuthSecurityScheme", {"scheme": "Bearer", "bearerFormat": "JWT"}),
        ),
        (
            "https://login.example/.well-known/openid-configuration",
            {"type": "openIdConnect", "openIdConnectUrl": "https://login.example/.well-known/openid-configuration"},
            (
                "openIdConnectSecurityScheme",
                {"openIdConnectUrl": "https://login.example/.well-known/openid-configuration"},
            ),
        ),
    ],
)
async def test_authentication_is_declared_in_both_notations(auth: str, flat: dict, wrapped: tuple[str, dict]):
    card = await card_of(hosted(auth=auth))
    scheme = card["securitySchemes"]["agentcore"]
    assert flat.items() <= scheme.items()
    assert scheme[wrapped[0]] == wrapped[1]
    assert card["security"] == [{"agentcore": []}]
    assert "agentcore" in card["securityRequirements"][0]["schemes"]


@pytest.mark.req("AC-S-35")
async def test_no_authentication_is_invented():
    card = await card_of(hosted())
    assert not {"securitySchemes", "security", "securityRequirements"} & set(card)
    with pytest.raises(ConfigurationError):
        hosted(auth="basic")


@pytest.mark.req("AC-S-36")
async def test_the_bytes_of_the_card_stay_the_same_and_no_agent_runs():
    agent, runs = Agent("counting", description="x"), []

    @agent.task
    async def work(ctx):
        runs.append(1)

    async with calling(hosted(agent, public_url=PUBLIC)) as client:
        answers = [await client.get(PATH) for _ in range(100)]
        assert len({hashlib.sha256(answer.content).digest() for answer in answers}) == 1
        assert len({answer.headers["etag"] for answer in answers}) == 1
        again = await client.get(PATH, headers={"if-none-match": answers[0].headers["etag"]})
        assert (again.status_code, runs) == (304, [])


@pytest.mark.req("AC-S-38")
async def test_only_json_rpc_is_on_the_card(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    card = own_card((PUBLIC, "GRPC", "1.0"), (PUBLIC, "HTTP+JSON", "1.0"), (PUBLIC, "JSONRPC", "1.0"))
    found = await card_of(hosted(card=card))
    assert {entry["protocolBinding"] for entry in found["supportedInterfaces"]} == {"JSONRPC"}
    assert len([r for r in caplog.records if "GRPC, HTTP+JSON" in r.getMessage()]) == 1


@pytest.mark.req("AC-S-55")
async def test_push_is_not_advertised_without_a_sender():
    card = own_card((PUBLIC, "JSONRPC", "1.0"))
    card = msgspec.structs.replace(card, capabilities=AgentCapabilities(streaming=True, push_notifications=True))
    assert (await card_of(hosted(card=card)))["capabilities"]["pushNotifications"] is False
    assert (await card_of(hosted()))["capabilities"]["pushNotifications"] is False


async def test_a_card_that_lacks_something_is_refused_at_once():
    with pytest.raises(ConfigurationError):
        agentcore.app(echo(), card=own_card(("nowhere", "JSONRPC", "1.0")))


OLD_MEMBERS = {
    *("url", "protocolVersion", "preferredTransport", "additionalInterfaces", "supportsAuthenticatedExtendedCard"),
    "security",
}


@pytest.mark.req("AC-S-34", "AC-S-35")
async def test_without_the_members_of_0_3_the_card_is_one_of_1_0():
    document = json.loads(files("dragoman.model").joinpath("schema/a2a.schema.json").read_text(encoding="utf-8"))
    cards = jsonschema.Draft202012Validator({**document, "$ref": "#/$defs/AgentCard"})
    async with calling(hosted(public_url=PUBLIC, auth="sigv4")) as client:
        both = (await client.get(PATH)).json()
        new = (await client.get(PATH, headers={"a2a-version": "1.0"})).json()
    cards.validate(new)
    stripped = {name: value for name, value in both.items() if name not in OLD_MEMBERS}
    scheme = stripped["securitySchemes"]["agentcore"]
    stripped["securitySchemes"] = {"agentcore": {n: v for n, v in scheme.items() if n.endswith("SecurityScheme")}}
    cards.validate(stripped)
    assert stripped == new


@pytest.mark.req("AC-S-31", "AC-S-32")
@pytest.mark.parametrize("card", [None, own_card(("https://old.example/", "JSONRPC", "1.0"))], ids=["made", "given"])
async def test_what_is_shown_is_what_is_signed(card: AgentCard | None):
    key = new_key("ES256", kid="k-1")
    known = SignaturePolicy(mode="required", trust=TrustStore(key.public.members))
    async with calling(hosted(card=card, public_url=PUBLIC, card_signer=CardSigner(key))) as client:
        for headers in ({}, {"a2a-version": "1.0"}):
            answer = await client.get(PATH, headers=headers)
            assert {entry["url"] for entry in answer.json()["supportedInterfaces"]} == {PUBLIC}
            assert (await verify_card(answer.content, known)).verified


def test_the_documentation_names_every_setting():
    page = Path(__file__).parents[3].joinpath("docs/agentcore.md").read_text(encoding="utf-8")
    settings = set(agentcore.Profile.__struct_fields__) - {"environment", "wall", "monotonic"}
    assert {name for name in settings if f"`{name}`" not in page} == set()
