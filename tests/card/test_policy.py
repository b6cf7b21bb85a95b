"""Signed cards from a server to a client, over real sockets."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

import dragoman
from dragoman import Agent, App, SignaturePolicy
from dragoman.card import verify_card
from dragoman.card.canonical import Json
from dragoman.errors import CardSignatureError, ConfigurationError
from dragoman.model import AgentCard, decode_value
from dragoman.testing.serving import serving
from tests.card.cards import card, public, signer, trusting
from tests.http.peer import Peer, as_json, peer

CARD = "/.well-known/agent-card.json"


def make_agent(**more: Any) -> Agent:
    agent = Agent("Tides", description="High and low water", **more)

    @agent.reply
    async def tides(ctx: dragoman.Context) -> str:
        return "high"

    return agent


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as made:
        yield made


def serve(server: Peer, value: Json) -> str:
    """Have a peer serve a card; its address."""
    server.on("GET", CARD, as_json(value))
    return server.url


def tampered() -> Json:
    return {**signer().sign_json(card()), "version": "6"}


@pytest.mark.req("SIGN-01", "SIGN-15", "SIGN-16", "AMB-87")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_signed_agent_is_verified_and_called(binding: str) -> None:
    async with (
        serving(App(make_agent(), card_signer=signer())) as url,
        dragoman.connect(url, bindings=[binding], signatures=trusting(mode="required")) as client,
    ):
        assert client.signatures.verified
        assert (await client.run("now?")).text == "high"


@pytest.mark.req("SIGN-20")
async def test_an_agent_has_signers_of_its_own_and_an_app_may_have_others() -> None:
    agent = make_agent(card_signer=[signer(), signer("EdDSA", "k2")])

    own = App(agent).card("https://agent.example")
    other = App(agent, card_signer=signer("RS256", "k3")).card("https://agent.example")

    assert (len(own.signatures), len(other.signatures)) == (2, 1)


@pytest.mark.req("SIGN-01", "SIGN-09", "V03-05")
async def test_the_pure_card_has_one_signature_and_that_for_both_generations_two() -> None:
    async with serving(App(make_agent(), card_signer=signer())) as url, httpx2.AsyncClient() as http:
        pure = await http.get(url + CARD, headers={"A2A-Version": "1.0"})
        both = await http.get(url + CARD)
    policy = trusting(compatible=False)

    of_pure, of_both = [await verify_card(answer.content, policy) for answer in (pure, both)]

    assert [check.form for check in of_pure.checks] == ["specification"]
    assert [check.form for check in of_both.checks] == ["specification, known members", "specification"]
    assert "url" in both.json()
    assert both.json()["signatures"][0] == pure.json()["signatures"][0] or both.headers["etag"] != pure.headers["etag"]


@pytest.mark.req("SIGN-12")
async def test_the_keys_of_the_signers_are_served_for_everybody() -> None:
    signers = [signer(), signer("EdDSA", "k2")]
    async with serving(App(make_agent(), card_signer=signers)) as url, httpx2.AsyncClient() as http:
        found = await http.get(url + "/.well-known/jwks.json")
        card_text = (await http.get(url + CARD)).content

    report = await verify_card(card_text, SignaturePolicy(trust=dragoman.TrustStore(found.json())))

    assert {check.outcome for check in report.checks} == {"verified"}
    assert not any("d" in key for key in found.json()["keys"])


@pytest.mark.req("SIGN-02")
async def test_every_interface_that_is_named_is_signed() -> None:
    app = App(make_agent(), card_signer=signer(), versions=("1.0",))
    interface = dragoman.model.AgentInterface(url="h:1", protocol_binding="GRPC", protocol_version="1.0")
    app.add_interface(interface)

    async with serving(app) as url, dragoman.connect(url, signatures=trusting()) as client:
        assert client.signatures.verified
        assert interface in client.card.supported_interfaces


@pytest.mark.req("AMB-87", "B129")
@pytest.mark.parametrize(
    ("value", "modes"),
    [
        (card(), ("off", "if-present")),
        (signer().sign_json(card()), ("off", "if-present", "required")),
        (signer(kid="unknown").sign_json(card()), ("off", "if-present")),
        (tampered(), ("off",)),
    ],
    ids=["unsigned", "signed", "unknown key", "tampered"],
)
async def test_connect_takes_a_card_as_its_policy_says(server: Peer, value: Json, modes: tuple[str, ...]) -> None:
    url, taken = serve(server, value), []
    for mode in ("off", "if-present", "required"):
        try:
            async with dragoman.connect(url, signatures=trusting(mode=mode)) as client:
                taken.append(mode)
                assert client.card.name == "Tides"
        except CardSignatureError:
            continue

    assert tuple(taken) == modes


@pytest.mark.req("AMB-87")
async def test_by_default_signatures_are_verified_if_they_are_there(server: Peer) -> None:
    header = {"protected": "eyJhbGciOiJub25lIiwia2lkIjoiayJ9", "signature": ""}

    with pytest.raises(CardSignatureError, match="algorithm none is refused"):
        await dragoman.connect(serve(server, {**card(), "signatures": [header]})).open()


@pytest.mark.req("AMB-81", "AMB-83")
async def test_of_a_verified_card_nothing_is_used_but_what_was_signed(server: Peer) -> None:
    value = {
        **signer().sign_json(card()),
        "iconUrl": "",
        "supportsAuthenticatedExtendedCard": True,
        "securityRequirements": [{"schemes": {"k": {}}}],
    }

    async with dragoman.connect(serve(server, value), signatures=trusting()) as client:
        used = client.card

    assert client.signatures.checks[0].form == "emptied, known members"
    assert (used.icon_url, used.security_requirements) == (None, [])
    assert used.capabilities.extended_agent_card is None
    assert used.description == "High and low water"


@pytest.mark.req("AMB-87")
async def test_a_bad_signature_beside_a_good_one_is_logged(server: Peer, caplog: pytest.LogCaptureFixture) -> None:
    value = signer("RS256", "k2").sign_json({**card(), "signatures": tampered()["signatures"]})
    value["signatures"][0] = signer().sign_json(card(name="X"))["signatures"][0]

    with caplog.at_level(logging.WARNING, "dragoman.client"):
        policy = trusting(public(), public("RS256", "k2"))
        async with dragoman.connect(serve(server, value), signatures=policy) as client:
            assert client.signatures.verified

    (record,) = caplog.records
    assert "signature does not match" in record.getMessage()


@pytest.mark.req("SIGN-15", "AMB-87")
@pytest.mark.parametrize("make", [dict, lambda value: decode_value(AgentCard, value)], ids=["dict", "AgentCard"])
async def test_a_card_in_hand_is_verified_too(make: Any) -> None:
    policy = trusting(mode="required")

    async with dragoman.connect(make(signer().sign_json(card())), signatures=policy) as client:
        assert client.signatures.verified
    with pytest.raises(CardSignatureError, match="does not match"):
        await dragoman.connect(make(tampered()), signatures=policy).open()
    with pytest.raises(CardSignatureError, match="is not signed"):
        await dragoman.connect(make(card()), signatures=policy).open()


@pytest.mark.req("SIGN-15")
async def test_a_card_in_a_file_is_verified_too(tmp_path: Any) -> None:
    file = tmp_path / "card.json"
    file.write_text(json.dumps(tampered()))

    with pytest.raises(CardSignatureError):
        await dragoman.connect(file, signatures=trusting()).open()


@pytest.mark.req("AMB-87")
async def test_an_agent_of_this_process_needs_no_signature() -> None:
    async with dragoman.connect(make_agent(), signatures="required") as client:
        assert (await client.run("now?")).text == "high"


def test_what_is_no_policy_is_refused() -> None:
    for given in ("always", 5):
        with pytest.raises(ConfigurationError, match="signatures"):
            dragoman.connect("https://agent.example", signatures=given)  # type: ignore[arg-type]


@pytest.mark.req("SIGN-01")
async def test_a_proxy_passes_no_signature_on_that_does_not_hold_for_it() -> None:
    async with (
        serving(App(make_agent(), card_signer=signer())) as url,
        serving(dragoman.proxy_app(url)) as proxy,
        dragoman.connect(proxy) as client,
    ):
        assert client.card.signatures == []


async def test_policies_share_no_keys_over_clients_of_different_trust(server: Peer) -> None:
    one, other = SignaturePolicy(), SignaturePolicy()

    assert one.key_sets is not other.key_sets
