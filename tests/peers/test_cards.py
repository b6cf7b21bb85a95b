"""One card for both generations, as the SDKs of either read it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from dragoman.compat.v03.cards import hybrid_card
from dragoman.model import AgentCard, decode_value
from tests.peers.calling import Json
from tests.peers.processes import PROGRAMS, needed
from tools.peers import JS_SDK, JS_SDK_03, SDK, SDK_03, interpreter, node

HERE = "https://agent.example"
KEY, LOGIN, BEARER, OPEN_ID, MUTUAL = "key", "login", "bearer", "openid", "mtls"
PLACES = {"JSONRPC": f"{HERE}/rpc", "HTTP+JSON": f"{HERE}/rest", "GRPC": "agent.example:443"}
CURRENT, OLD = ([[url, binding, version] for binding, url in PLACES.items()] for version in ("1.0", "0.3"))
FLOW = {"authorizationUrl": f"{HERE}/a", "tokenUrl": f"{HERE}/t", "scopes": {"tides": "read"}, "pkceRequired": True}
SCHEMES: Json = {
    KEY: {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
    LOGIN: {"oauth2SecurityScheme": {"flows": {"authorizationCode": FLOW}}},
    BEARER: {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}},
    OPEN_ID: {"openIdConnectSecurityScheme": {"openIdConnectUrl": f"{HERE}/.well-known/openid-configuration"}},
    MUTUAL: {"mtlsSecurityScheme": {}},
}
READ: Json = {
    "name": "Tides",
    "extended": True,
    "schemes": {KEY: "apiKey", LOGIN: "oauth2", BEARER: "http", OPEN_ID: "openIdConnect", MUTUAL: "mutualTLS"},
    "security": [{KEY: []}, {LOGIN: ["tides"]}],
    "skill_security": [[{KEY: []}]],
}


def make_card(interfaces: list[list[str]]) -> AgentCard:
    """A card with every kind of security scheme."""
    names = ("url", "protocolBinding", "protocolVersion")
    return decode_value(AgentCard, {
        "name": "Tides", "description": "High and low water", "version": "2.4.0",
        "supportedInterfaces": [dict(zip(names, each, strict=True)) for each in interfaces],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": True},
        "securitySchemes": SCHEMES,
        "securityRequirements": [{"schemes": {KEY: {}}}, {"schemes": {LOGIN: {"list": ["tides"]}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{
            "id": "tides", "name": "Tides", "description": "High and low water", "tags": ["tide"],
            "securityRequirements": [{"schemes": {KEY: {}}}],
        }],
    })  # fmt: skip


def command_of(peer: str) -> tuple[list[str], dict[str, str]]:
    """The program of a peer that reads a card, and what its environment needs."""
    if peer in (SDK, SDK_03):
        return [str(needed(interpreter, peer)), str(PROGRAMS / "read_card.py")], {}
    found = needed(node, peer)
    folder = Path(__file__).parent / ("js" if peer == JS_SDK else "js_v03")
    return [str(found.program), str(folder / "read_card.mjs")], {"PEER_MODULES": str(found.modules)}


def read_by(peer: str, card: Json) -> Json:
    """What a peer reads in a card. AssertionError with what it says when it refuses it."""
    command, more = command_of(peer)
    environment = {**os.environ, **more}
    done = subprocess.run(command, input=json.dumps(card), env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(done.stdout)
    return found


@pytest.mark.timeout(600)
@pytest.mark.req("V03-05", "AC-S-34", "AC-S-35")
@pytest.mark.parametrize("peer", [SDK, JS_SDK])
def test_readers_of_the_current_version_see_every_interface_and_every_scheme(peer: str) -> None:
    seen = read_by(peer, hybrid_card(make_card([*CURRENT, *OLD])))

    assert seen == {**READ, "interfaces": [*CURRENT, *OLD]}


@pytest.mark.timeout(600)
@pytest.mark.req("V03-05", "V03-P14", "AC-S-34", "AC-S-35")
@pytest.mark.parametrize("peer", [SDK_03, JS_SDK_03])
def test_readers_of_0_3_see_the_interfaces_that_speak_it_and_every_scheme(peer: str) -> None:
    seen = read_by(peer, hybrid_card(make_card([*CURRENT, *OLD])))

    assert seen == {**READ, "interfaces": [[url, binding, "0.3.0"] for url, binding, _ in OLD]}


@pytest.mark.timeout(600)
@pytest.mark.req("V03-05", "V03-P12", "V03-P14", "B141")
def test_a_card_without_an_interface_of_0_3_is_refused_by_its_readers_and_read_by_others() -> None:
    card = hybrid_card(make_card(CURRENT))

    with pytest.raises(AssertionError, match="validation error"):
        read_by(SDK_03, card)
    assert read_by(SDK, card) == {**READ, "interfaces": CURRENT}


@pytest.mark.timeout(600)
@pytest.mark.req("V03-05", "B141")
@pytest.mark.parametrize("peer", [SDK, SDK_03, JS_SDK, JS_SDK_03])
def test_a_card_with_interfaces_of_0_3_only_is_read_by_both(peer: str) -> None:
    version = "0.3.0" if peer in (SDK_03, JS_SDK_03) else "0.3"

    seen = read_by(peer, hybrid_card(make_card(OLD)))

    assert seen == {**READ, "interfaces": [[url, binding, version] for url, binding, _ in OLD]}
