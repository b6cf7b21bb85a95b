"""Cards that are refused when an agent is made: each by a message that names the field."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, App
from dragoman.card import check_card
from dragoman.card.canonical import Json
from dragoman.card.faults import find_faults
from dragoman.errors import ConfigurationError
from dragoman.model import AgentCapabilities, AgentCard, AgentProvider, AgentSkill, decode_value
from tests.card.cards import card

URL = "https://a.example"


def read(**more: Any) -> AgentCard:
    return decode_value(AgentCard, card(**more))


def interface(**more: Any) -> Json:
    return {"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", **more}


def skill(**more: Any) -> Json:
    return {"id": "s", "name": "S", "description": "s", "tags": ["t"], **more}


def oauth(**flows: Json) -> Json:
    return {"securitySchemes": {"o": {"oauth2SecurityScheme": {"flows": flows}}}}


@pytest.mark.req("CARD-08", "CARD-16", "DATA-12", "AMB-77")
@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"name": ""}, "name"),
        ({"description": ""}, "description"),
        ({"version": ""}, "version"),
        ({"supportedInterfaces": []}, "supportedInterfaces"),
        ({"defaultInputModes": []}, "defaultInputModes"),
        ({"defaultOutputModes": ["text"]}, "defaultOutputModes[0]"),
        ({"skills": []}, "skills"),
        ({"skills": [skill(id="")]}, "skills[0].id"),
        ({"skills": [skill(tags=[])]}, "skills[0].tags"),
        ({"skills": [skill(inputModes=["text/"])]}, "skills[0].inputModes[0]"),
        ({"skills": [skill(), skill()]}, "skills"),
        ({"supportedInterfaces": [interface(protocolBinding="")]}, "supportedInterfaces[0].protocolBinding"),
        ({"supportedInterfaces": [interface(protocolVersion="one")]}, "supportedInterfaces[0].protocolVersion"),
        ({"supportedInterfaces": [interface(url="")]}, "supportedInterfaces[0].url"),
        ({"supportedInterfaces": [interface(url="/rpc")]}, "supportedInterfaces[0].url"),
        ({"supportedInterfaces": [interface(url="https://[::")]}, "supportedInterfaces[0].url"),
        ({"supportedInterfaces": [interface(url="https://a/message:send")]}, "supportedInterfaces[0].url"),
        ({"supportedInterfaces": [interface(protocolBinding="GRPC", url="a.example")]}, "supportedInterfaces[0].url"),
        ({"provider": {"url": "", "organization": "A"}}, "provider.url"),
        ({"provider": {"url": "https://a.example", "organization": ""}}, "provider.organization"),
        ({"documentationUrl": "docs"}, "documentationUrl"),
        ({"iconUrl": "javascript:1"}, "iconUrl"),
        ({"capabilities": {"extensions": [{"required": True}]}}, "capabilities.extensions[0].uri"),
        ({"capabilities": {"extensions": [{"uri": "u"}, {"uri": "u"}]}}, "capabilities.extensions"),
        ({"signatures": [{"protected": "", "signature": "s"}]}, "signatures[0].protected"),
        ({"securityRequirements": [{"schemes": {"k": {}}}]}, "securityRequirements[0].schemes.k"),
        (
            {"skills": [skill(securityRequirements=[{}, {"schemes": {"k": {}}}])]},
            "skills[0].securityRequirements[1].schemes.k",
        ),
        ({"securitySchemes": {"k": {}}}, "securitySchemes.k"),
        (
            {"securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "body", "name": "n"}}}},
            "securitySchemes.k.apiKeySecurityScheme.location",
        ),
        (
            {"securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": ""}}}},
            "securitySchemes.k.apiKeySecurityScheme.name",
        ),
        (
            {"securitySchemes": {"k": {"httpAuthSecurityScheme": {"scheme": ""}}}},
            "securitySchemes.k.httpAuthSecurityScheme.scheme",
        ),
        (
            {"securitySchemes": {"k": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "issuer"}}}},
            "securitySchemes.k.openIdConnectSecurityScheme.openIdConnectUrl",
        ),
        (oauth(), "securitySchemes.o.oauth2SecurityScheme.flows"),
        (
            oauth(clientCredentials={"tokenUrl": "", "scopes": {}}),
            "securitySchemes.o.oauth2SecurityScheme.flows.clientCredentials.tokenUrl",
        ),
        (
            oauth(deviceCode={"deviceAuthorizationUrl": "x", "tokenUrl": "https://a.example/t", "scopes": {}}),
            "securitySchemes.o.oauth2SecurityScheme.flows.deviceCode.deviceAuthorizationUrl",
        ),
    ],
)
def test_a_fault_is_named_by_its_field(more: Json, path: str) -> None:
    found = read(**more)

    (fault,) = find_faults(found)

    assert fault.path == path
    with pytest.raises(ConfigurationError, match="agent card"):
        check_card(found)


def test_a_card_with_everything_in_order_has_none() -> None:
    flow = {"authorizationUrl": f"{URL}/a", "tokenUrl": f"{URL}/t", "scopes": {"s": "S"}}
    found = read(
        supportedInterfaces=[
            interface(), interface(protocolBinding="GRPC", url="a.example:443", protocolVersion="0.3"),
            interface(protocolBinding="https://x.example/binding", url="wss://a.example/ws"),
        ],
        iconUrl="data:image/png;base64,AA==",
        provider={"url": URL, "organization": "A"},
        defaultInputModes=["text/plain; charset=utf-8", "*/*"],
        securitySchemes={
            "k": {"apiKeySecurityScheme": {"location": "cookie", "name": "n"}},
            "o": {"oauth2SecurityScheme": {"flows": {"authorizationCode": flow}}},
            "m": {"mtlsSecurityScheme": {}},
        },
        securityRequirements=[{"schemes": {"k": {}, "m": {}}}, {"schemes": {"o": {"list": ["s"]}}}, {}],
    )  # fmt: skip

    assert find_faults(found) == []


@pytest.mark.req("CARD-25")
@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("streaming", "streaming"), ("push_notifications", "pushNotifications"),
        ("extended_agent_card", "extendedAgentCard"),
    ],
)  # fmt: skip
def test_a_card_that_promises_more_than_is_served_is_refused(field: str, name: str) -> None:
    found = read(capabilities={name: True})

    check_card(found, offered=AgentCapabilities(**{field: True}))
    with pytest.raises(ConfigurationError, match=rf"capabilities\.{name} of the agent card is true"):
        check_card(found, offered=AgentCapabilities())


@pytest.mark.req("CARD-08", "DATA-12")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"version": ""}, "lacks version"),
        ({"input_modes": ["text"]}, "defaultInputModes"),
        ({"provider": AgentProvider(organization="", url=URL)}, r"provider\.organization"),
        ({"icon_url": "icon"}, "iconUrl"),
        ({"skills": [AgentSkill(id="s", name="", description="d", tags=["t"])]}, r"skills\[0\]\.name"),
    ],
)
def test_an_agent_with_such_a_card_is_not_served(more: Any, words: str) -> None:
    agent = Agent("A", description="a", **more)

    @agent.reply
    async def answer(ctx: Any) -> str:
        return ""

    with pytest.raises(ConfigurationError, match=words):
        App(agent)
