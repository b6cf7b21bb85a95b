"""Cards between the generations, the hybrid, and the reading of any card."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.compat.v03 import types as v03
from dragoman.compat.v03.cards import down_card, hybrid_card, read_card, up_card
from dragoman.compat.v03.kinds import write_kind
from dragoman.compat.v03.protojson import write_proto
from dragoman.compat.v03.reading import read
from dragoman.errors import InvalidParamsError
from dragoman.model import (
    AgentCapabilities,
    AgentCard,
    AgentCardSignature,
    AgentExtension,
    AgentInterface,
    AgentProvider,
    AgentSkill,
    APIKeySecurityScheme,
    AuthorizationCodeOAuthFlow,
    DeviceCodeOAuthFlow,
    HTTPAuthSecurityScheme,
    MutualTlsSecurityScheme,
    OAuth2SecurityScheme,
    OAuthFlows,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    decode_value,
    encode_json,
)

SSO = OAuthFlows(
    authorization_code=AuthorizationCodeOAuthFlow(
        authorization_url="https://id.example/a",
        token_url="https://id.example/t",
        scopes={"locks": "read"},
    )
)
DEVICE = OAuthFlows(
    device_code=DeviceCodeOAuthFlow(
        device_authorization_url="https://id.example/d", token_url="https://id.example/t", scopes={}
    )
)


def interface(binding: str, version: str, url: str = "https://locks.example/rpc") -> AgentInterface:
    return AgentInterface(url=url, protocol_binding=binding, protocol_version=version)


def needs(*names: str, scopes: tuple[str, ...] = ()) -> SecurityRequirement:
    return SecurityRequirement(schemes={name: StringList(list=list(scopes)) for name in names})


def card(**members: Any) -> AgentCard:
    known: dict[str, Any] = {
        "name": "Lock Keeper",
        "description": "Opening hours of locks",
        "version": "2.4.0",
        "supported_interfaces": [interface("JSONRPC", "0.3"), interface("GRPC", "0.3", "locks.example:443")],
        "capabilities": AgentCapabilities(streaming=True),
        "default_input_modes": ["text/plain"],
        "default_output_modes": ["text/plain"],
        "skills": [AgentSkill(id="hours", name="Hours", description="When", tags=["lock"])],
    }
    return AgentCard(**{**known, **members})


FULL = card(
    provider=AgentProvider(organization="Canal Office", url="https://canal.example"),
    documentation_url="https://locks.example/docs",
    icon_url="https://locks.example/icon.png",
    capabilities=AgentCapabilities(
        streaming=False,
        push_notifications=True,
        extended_agent_card=True,
        extensions=[AgentExtension(uri="https://x.example/e", required=True, params={"n": 1})],
    ),
    security_schemes={
        "key": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Key")),
        "http": SecurityScheme(
            http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT", description="d")
        ),
        "sso": SecurityScheme(oauth2_security_scheme=OAuth2SecurityScheme(flows=SSO)),
        "oidc": SecurityScheme(
            open_id_connect_security_scheme=OpenIdConnectSecurityScheme(open_id_connect_url="https://id.example/o")
        ),
        "tls": SecurityScheme(mtls_security_scheme=MutualTlsSecurityScheme(description="d")),
    },
    security_requirements=[needs("key", "tls"), needs("sso", scopes=("locks",))],
    skills=[
        AgentSkill(
            id="hours",
            name="Hours",
            description="When",
            tags=["lock"],
            examples=["Sunday?"],
            input_modes=["text/plain"],
            output_modes=["text/plain"],
            security_requirements=[needs("key")],
        )
    ],
)

WRITERS = [write_kind, write_proto]


# Both ways.


@pytest.mark.req("V03-05", "V03-07", "V03-P27")
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("known", [card(), FULL])
def test_a_card_that_0_3_can_say_comes_back_as_it_was(write: Any, known: AgentCard) -> None:
    old = down_card(known)
    assert old is not None

    again = read(v03.AgentCard, msgspec.json.decode(msgspec.json.encode(write(old))), answer=True)

    assert again == old
    assert up_card(again) == known


@pytest.mark.req("V03-05", "V03-P14")
def test_only_interfaces_of_0_3_are_named_the_first_as_the_main_one() -> None:
    old = down_card(
        card(
            supported_interfaces=[
                interface("JSONRPC", "1.0", "https://new.example"),
                interface("HTTP+JSON", "0.3", "https://rest.example"),
                interface("JSONRPC", "0.3.0", "https://rpc.example"),
                interface("GRPC", "", "grpc.example"),
            ]
        )
    )

    assert old is not None
    assert (old.url, old.preferred_transport, old.protocol_version) == ("https://rest.example", "HTTP+JSON", "0.3.0")
    assert [(entry.url, entry.transport) for entry in old.additional_interfaces] == [
        ("https://rest.example", "HTTP+JSON"),
        ("https://rpc.example", "JSONRPC"),
    ]


@pytest.mark.req("B141", "V03-05", "V03-P12", "V03-P13")
def test_a_card_without_an_interface_of_0_3_has_no_form_of_0_3() -> None:
    new = card(supported_interfaces=[interface("JSONRPC", "1.0")])

    assert down_card(new) is None
    assert hybrid_card(new) == msgspec.json.decode(encode_json(new))


@pytest.mark.req("V03-P15")
def test_signatures_are_not_carried_from_one_form_to_the_other() -> None:
    signed = card(signatures=[AgentCardSignature(protected="p", signature="s")])
    old = down_card(signed)
    assert old is not None
    assert old.signatures == []

    old.signatures = [v03.AgentCardSignature(protected="p", signature="s")]
    assert up_card(old).signatures == []


@pytest.mark.req("V03-P25")
def test_of_several_flows_one_is_kept_by_preference() -> None:
    value = {
        "type": "oauth2",
        "flows": {
            "password": {"tokenUrl": "https://id.example/p", "scopes": {}},
            "clientCredentials": {"tokenUrl": "https://id.example/t", "scopes": {"a": "b"}},
        },
    }

    [scheme] = read_card(old_card(securitySchemes={"sso": value})).security_schemes.values()

    assert scheme.oauth2_security_scheme is not None
    flows = scheme.oauth2_security_scheme.flows
    assert flows.password is None
    assert flows.client_credentials is not None
    assert flows.client_credentials.scopes == {"a": "b"}


def test_what_only_1_0_can_say_is_left_out_with_all_that_names_it() -> None:
    key = SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Key"))
    tv = SecurityScheme(oauth2_security_scheme=OAuth2SecurityScheme(flows=DEVICE))
    requirements = [needs("tv"), needs("key", "tv"), needs("schemes"), needs("key")]
    old = down_card(
        card(
            security_schemes={"key": key, "tv": tv, "schemes": key},
            security_requirements=requirements,
            skills=[AgentSkill(id="s", name="S", description="d", tags=[], security_requirements=requirements)],
        )
    )

    assert old is not None
    assert list(old.security_schemes) == ["key"]
    assert [list(needed.schemes) for needed in old.security] == [["key"]]
    assert [list(needed.schemes) for needed in old.skills[0].security] == [["key"]]


# The hybrid.

HYBRID = card(
    supported_interfaces=[
        interface("JSONRPC", "1.0"),
        interface("JSONRPC", "0.3"),
        interface("HTTP+JSON", "0.3", "https://locks.example/rest"),
    ],
    capabilities=AgentCapabilities(streaming=True, extended_agent_card=True),
    security_schemes={
        "key": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Key")),
        "sso": SecurityScheme(
            oauth2_security_scheme=OAuth2SecurityScheme(
                flows=OAuthFlows(authorization_code=msgspec.structs.replace(SSO.authorization_code, pkce_required=True))
            )
        ),
        "tv": SecurityScheme(oauth2_security_scheme=OAuth2SecurityScheme(flows=DEVICE)),
    },
    security_requirements=[needs("key"), needs("tv"), needs("sso", scopes=("locks",))],
    skills=[
        AgentSkill(id="a", name="A", description="d", tags=[], security_requirements=[needs("key")]),
        AgentSkill(id="b", name="B", description="d", tags=[], security_requirements=[needs("tv")]),
    ],
)


@pytest.mark.req("V03-05")
def test_a_hybrid_is_for_readers_of_1_0_the_card_of_1_0() -> None:
    value = hybrid_card(HYBRID)

    assert decode_value(AgentCard, value) == HYBRID
    assert read_card(value) == HYBRID


@pytest.mark.req("V03-05")
def test_a_hybrid_is_for_readers_of_0_3_the_card_of_0_3() -> None:
    value = hybrid_card(HYBRID)
    expected = down_card(HYBRID)
    assert expected is not None

    found = read(v03.AgentCard, value, answer=True)

    tv = found.security_schemes.pop("tv")
    assert tv.oauth2_security_scheme is not None
    assert found == expected


@pytest.mark.req("V03-05")
def test_a_hybrid_carries_both_shapes_of_security_with_the_type_first() -> None:
    value = hybrid_card(HYBRID)

    key = value["securitySchemes"]["key"]
    assert next(iter(key)) == "type"
    assert key == {
        "type": "apiKey",
        "in": "header",
        "name": "X-Key",
        "apiKeySecurityScheme": {"location": "header", "name": "X-Key"},
    }
    sso = value["securitySchemes"]["sso"]
    assert next(iter(sso)) == "type"
    assert sso["flows"] == sso["oauth2SecurityScheme"]["flows"]
    assert sso["flows"]["authorizationCode"]["pkceRequired"] is True
    assert value["security"] == [{"key": []}, {"sso": ["locks"]}]
    assert value["securityRequirements"][1] == {"schemes": {"tv": {}}}
    assert [skill.get("security") for skill in value["skills"]] == [[{"key": []}], None]


@pytest.mark.req("V03-05")
def test_a_hybrid_has_the_members_of_0_3() -> None:
    value = hybrid_card(HYBRID)

    assert {name: value[name] for name in ("protocolVersion", "url", "preferredTransport")} == {
        "protocolVersion": "0.3.0",
        "url": "https://locks.example/rpc",
        "preferredTransport": "JSONRPC",
    }
    assert value["additionalInterfaces"] == [
        {"url": "https://locks.example/rpc", "transport": "JSONRPC"},
        {"url": "https://locks.example/rest", "transport": "HTTP+JSON"},
    ]
    assert value["supportsAuthenticatedExtendedCard"] is True


def test_the_given_card_is_not_changed() -> None:
    before = encode_json(HYBRID)

    hybrid_card(HYBRID)

    assert encode_json(HYBRID) == before


# Reading.


def old_card(**members: Any) -> dict[str, Any]:
    return {
        "protocolVersion": "0.3.0",
        "name": "Lock Keeper",
        "description": "Opening hours",
        "url": "https://locks.example/rpc",
        "version": "1",
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        **members,
    }


def offered(value: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(i.url, i.protocol_binding, i.protocol_version) for i in read_card(value).supported_interfaces]


@pytest.mark.req("B143", "V03-P22")
@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.2.5", "0.2"), ("0.2.9", "0.2"), ("0.3", "0.3"), ("0.3.0", "0.3"), (None, "0.3"), ("", "0.3")],
)
def test_a_version_of_a_card_is_cut_and_an_absent_one_is_0_3(version: str | None, expected: str) -> None:
    assert offered(old_card(protocolVersion=version)) == [("https://locks.example/rpc", "JSONRPC", expected)]


@pytest.mark.req("B143", "V03-05")
def test_the_main_address_comes_first_and_none_comes_twice() -> None:
    value = old_card(
        preferredTransport="HTTP+JSON",
        additionalInterfaces=[
            {"url": "locks.example:443", "transport": "GRPC"},
            {"url": "https://locks.example/rpc", "transport": "HTTP+JSON"},
            {"url": "https://locks.example/rpc", "transport": "JSONRPC"},
        ],
    )

    assert offered(value) == [
        ("https://locks.example/rpc", "HTTP+JSON", "0.3"),
        ("locks.example:443", "GRPC", "0.3"),
        ("https://locks.example/rpc", "JSONRPC", "0.3"),
    ]


@pytest.mark.req("B143")
def test_interfaces_of_1_0_go_before_the_members_of_0_3() -> None:
    value = old_card(
        supportedInterfaces=[{"url": "https://new.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
    )

    assert offered(value) == [("https://new.example", "JSONRPC", "1.0")]


def test_the_card_of_the_vendors_sample_is_read() -> None:
    value = old_card(capabilities={"streaming": True}, defaultInputModes=["text"], skills=[{"id": "s", "tags": []}])

    found = read_card(value)

    assert found.capabilities.streaming is True
    assert found.capabilities.push_notifications is None
    assert found.skills == [AgentSkill(id="s", name="", description="", tags=[])]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "supportedInterfaces"),
        ({"name": "x", "supportedInterfaces": []}, "supportedInterfaces"),
        (old_card(protocolVersion="1.0"), "protocolVersion"),
        (old_card(protocolVersion="2.0.1"), "protocolVersion"),
        (old_card(protocolVersion="new"), "protocolVersion"),
        (old_card(protocolVersion=0.3), "protocolVersion"),
        (old_card(url=7), "url"),
        (old_card(skills={}), "skills"),
        (old_card(security=[{"key": "scope"}]), 'security[0]["key"]'),
        ({"supportedInterfaces": "x"}, "supportedInterfaces"),
    ],
)
def test_a_card_that_contradicts_itself_or_is_none_is_an_error(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        read_card(value)

    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.req("V03-P27")
def test_security_of_an_old_card_is_read_in_either_shape_each_by_itself() -> None:
    value = old_card(
        securitySchemes={
            "flat": {"type": "apiKey", "in": "query", "name": "k"},
            "proto": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "schemes": {"type": "mutualTLS"},
            "odd": {"type": "retina"},
        },
        security=[{"flat": []}, {"schemes": {"proto": {"list": ["a"]}}}, {"schemes": ["b"]}],
    )

    found = read_card(value)

    assert found.security_schemes == {
        "flat": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="query", name="k")),
        "proto": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer")),
        "schemes": SecurityScheme(mtls_security_scheme=MutualTlsSecurityScheme()),
        "odd": SecurityScheme(),
    }
    assert found.security_requirements == [
        needs("flat"),
        needs("proto", scopes=("a",)),
        needs("schemes", scopes=("b",)),
    ]


@pytest.mark.req("V03-P27")
def test_security_of_a_card_of_1_0_is_read_in_the_old_shape_too() -> None:
    new: dict[str, Any] = msgspec.json.decode(encode_json(card()))
    new["securitySchemes"] = {
        "key": {"type": "apiKey", "in": "header", "name": "k"},
        "sso": {"type": "oauth2", "flows": {"implicit": {"scopes": {}}, "deviceCode": {"tokenUrl": "u", "scopes": {}}}},
        "odd": {"type": "retina"},
    }
    new["security"] = [{"key": []}]
    new["supportsAuthenticatedExtendedCard"] = True

    found = read_card(new)

    assert found.security_schemes["key"].api_key_security_scheme == APIKeySecurityScheme(location="header", name="k")
    oauth2 = found.security_schemes["sso"].oauth2_security_scheme
    assert oauth2 is not None
    assert oauth2.flows.device_code is not None
    assert found.security_schemes["odd"] == SecurityScheme()
    assert found.security_requirements == [needs("key")]
    assert found.capabilities.extended_agent_card is True
