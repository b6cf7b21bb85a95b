"""Verifying the signatures of cards: what holds, and what must never."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from dragoman.card import SignaturePolicy, TrustStore, check_policy
from dragoman.card.canonical import Json, signed_content, without_empties
from dragoman.errors import CardSignatureError, ConfigurationError
from dragoman.jose import decode_base64url, encode_base64url, new_key
from tests.card.cards import card, entry, key, public, signer, trusting, verify

NONE = encode_base64url(b'{"alg":"none","kid":"k1"}')


def signed(*entries: Json, **more: Any) -> Json:
    return {**card(**more), "signatures": list(entries)}


def changed(value: Json, **more: Any) -> Json:
    return {**value, **more}


@pytest.mark.req("SIGN-15", "B129")
@pytest.mark.parametrize(
    "more",
    [
        {"name": "Other"}, {"version": ""}, {"supportedInterfaces": [{}]}, {"capabilities": {}},
        {"capabilities": {"streaming": True}}, {"iconUrl": ""}, {"securityRequirements": [{"schemes": {"k": {}}}]},
        {"provider": {"url": "https://evil.example", "organization": "E"}},
    ],
)  # fmt: skip
def test_a_field_that_was_tampered_with_breaks_the_signature(more: Json) -> None:
    report = verify(changed(signer().sign_json(card()), **more), trusting(compatible=False))

    assert (report.outcome, report.content) == ("invalid", None)
    assert "signature does not match" in str(report.checks[0])


@pytest.mark.req("AMB-81")
def test_empty_values_that_were_added_are_not_used_though_the_card_is_verified_in_a_form_without_them() -> None:
    value = changed(signer().sign_json(card()), securityRequirements=[{"schemes": {"k": {}}}], iconUrl="")

    report = verify(value)

    assert report.checks[0].form == "emptied"
    assert report.content == signed_content(card())


@pytest.mark.req("AMB-81", "B129")
@pytest.mark.parametrize(
    ("made", "form"),
    [
        (signed_content, "specification"),
        (lambda value: signed_content(value, unknown=False), "specification, known members"),
        (without_empties, "emptied"),
        (lambda value: without_empties(signed_content(value, unknown=False)), "emptied, known members"),
        (lambda value: value, "as received"),
    ],
)
def test_a_card_verifies_in_the_form_that_its_signer_used_and_only_that_is_used(made: Any, form: str) -> None:
    value = card(description="", later={"x": [1, ""]}, securityRequirements=[], documentationUrl="")

    report = verify({**value, "signatures": [entry(made(value))]})

    assert (report.outcome, report.checks[0].form, report.content) == ("verified", form, made(value))


@pytest.mark.req("AMB-81")
def test_the_forms_of_other_signers_can_be_left_out() -> None:
    value = card(description="")

    report = verify({**value, "signatures": [entry(without_empties(value))]}, trusting(compatible=False))

    assert report.outcome == "invalid"


@pytest.mark.req("AMB-83")
def test_members_of_a_later_version_are_verified_with_what_is_known() -> None:
    later = card(later=[1, {"x": None}])

    assert verify(signer().sign_json(later)).verified
    assert verify({**later, "signatures": [entry(card())]}, trusting(compatible=False)).verified


@pytest.mark.req("AMB-82")
def test_a_required_field_that_is_missing_is_not_made_up() -> None:
    without = card(description=None)

    assert verify(signer().sign_json(without)).verified
    assert not verify({**without, "signatures": [entry(card(description=""))]}, trusting(compatible=False)).verified


@pytest.mark.req("AMB-85", "B129")
@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"alg": "none", "kid": "k1"}, "algorithm none is refused"),
        ({"alg": "None", "kid": "k1"}, "algorithm None is refused"),
        ({"alg": "HS256", "kid": "k1"}, "algorithm HS256 is refused"),
        ({"alg": "HS512", "kid": "k1"}, "algorithm HS512 is refused"),
        ({"alg": "ES256K", "kid": "k1"}, "algorithm ES256K is refused"),
        ({"alg": "es256", "kid": "k1"}, "algorithm es256 is refused"),
        ({"alg": "", "kid": "k1"}, "has no alg"),
        ({"kid": "k1"}, "has no alg"),
        ({"alg": "ES256"}, "has no kid"),
        ({"alg": "ES256", "kid": ""}, "has no kid"),
        ({"alg": "ES256", "kid": 7}, "kid in the protected header is no text"),
        ({"alg": ["ES256"], "kid": "k1"}, "alg in the protected header is no text"),
        ({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": False}, "extension that is not known"),
        ({"alg": "ES256", "kid": "k1", "b64": False}, "extension that is not known"),
        ({"alg": "RS256", "kid": "k1"}, "the key is not for RS256"),
        ({"alg": "ES384", "kid": "k1"}, "the key is not for ES384"),
    ],
)
def test_a_header_that_must_not_be_verified_never_passes(header: Json, words: str) -> None:
    report = verify(signed(entry(card(), header)))

    assert report.outcome == "invalid"
    assert words in report.checks[0].reason


@pytest.mark.req("AMB-85")
@pytest.mark.parametrize("header", [{"alg": "ES256", "kid": "k1"}, {"alg": "ES256", "kid": "k1", "typ": "JWT"}])
def test_the_type_is_not_required(header: Json) -> None:
    assert verify(signed(entry(card(), header))).verified


@pytest.mark.req("AMB-85", "B129")
def test_a_public_key_is_no_shared_secret() -> None:
    """The classic: sign with HMAC, the text of the public key being the secret."""
    import hashlib
    import hmac

    header = encode_base64url(b'{"alg":"HS256","kid":"k1"}')
    payload = encode_base64url(json.dumps(card()).encode())
    tag = hmac.new(json.dumps(public()).encode(), f"{header}.{payload}".encode(), hashlib.sha256).digest()

    report = verify(signed({"protected": header, "signature": encode_base64url(tag)}))

    assert report.outcome == "invalid"


@pytest.mark.req("SIGN-15", "B129")
@pytest.mark.parametrize(
    "given",
    [
        None, 1, "text", [], {}, {"protected": "e30"}, {"protected": 1, "signature": "x"},
        {"protected": "e30", "signature": 1}, {"protected": "!", "signature": ""},
        {"protected": "e30=", "signature": ""},
        {"protected": "bm90IGpzb24", "signature": ""}, {"protected": "W10", "signature": ""},
        {"protected": "A" * 9000, "signature": ""}, {"protected": "e30", "signature": "A" * 5000},
        {"protected": NONE, "signature": ""}, {"protected": NONE, "signature": "*"},
        {"protected": encode_base64url(b'{"alg":"none","alg":"ES256","kid":"k1"}'), "signature": ""},
        {"protected": encode_base64url(b"[" * 5000), "signature": ""},
    ],
)  # fmt: skip
def test_what_is_no_signature_is_invalid_and_raises_nothing(given: Any) -> None:
    report = verify(signed(given))

    assert report.outcome == "invalid"
    assert report.checks[0].reason


@pytest.mark.req("SIGN-15")
def test_nothing_that_is_not_protected_counts() -> None:
    stranger = new_key("ES256", kid="k1")
    good = entry(card())

    for header in ({"jwk": stranger.public.members}, {"x5c": ["AAAA"]}, {"note": "hello"}):
        assert not verify(signed(entry(card(), by=stranger) | {"header": header})).verified
        assert verify(signed(good | {"header": header})).verified
    repeated = verify(signed(good | {"header": {"alg": "none"}}))
    assert "repeats what is protected" in repeated.checks[0].reason


@pytest.mark.req("SIGN-15")
def test_a_key_inside_the_protected_header_is_not_trusted() -> None:
    stranger = new_key("ES256", kid="new")
    header = {"alg": "ES256", "kid": "new", "jwk": stranger.public.members}

    report = verify(signed(entry(card(), header, by=stranger)))

    assert (report.outcome, report.checks[0].reason) == ("unverifiable", "no key for kid new")


@pytest.mark.req("SIGN-15", "SIGN-18")
def test_without_a_key_nothing_can_be_said() -> None:
    report = verify(signer(kid="other").sign_json(card()))

    assert str(report.checks[0]) == "unverifiable (no key for kid other)"
    assert report.content is None


@pytest.mark.req("SIGN-19")
@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"exp": time.time() - 1}, "the key has expired"),
        ({"exp": 0}, "the key has expired"),
        ({"nbf": time.time() + 3600}, "the key is not valid yet"),
        ({"revoked": True}, "the key is revoked"),
        ({"revoked": {"revoked_at": 1}}, "the key is revoked"),
        ({"use": "enc"}, "the key is not for signatures"),
        ({"use": None, "key_ops": ["sign"]}, "the key is not for signatures"),
        ({"alg": "ES384"}, "the key is not for ES256"),
    ],
)
def test_a_key_that_must_not_be_used_is_not(members: Json, words: str) -> None:
    report = verify(signer().sign_json(card()), trusting({**public(), **members}))

    assert (report.outcome, report.checks[0].reason) == ("invalid", words)


@pytest.mark.req("SIGN-19")
def test_a_key_that_is_valid_now_is_used_and_one_that_was_named_as_revoked_is_not() -> None:
    value = signer().sign_json(card())
    valid = public(nbf=time.time() - 10, exp=time.time() + 10, revoked=False)

    assert verify(value, trusting(valid)).verified
    revoked = SignaturePolicy(trust=TrustStore({"keys": [valid]}, revoked=["k1"]))
    assert verify(value, revoked).checks[0].reason == "the key is revoked"


@pytest.mark.req("SIGN-19", "SIGN-20")
def test_while_keys_are_rotated_the_new_one_carries_the_card() -> None:
    value = signer("RS256", "k2").sign_json(signer().sign_json(card()))

    report = verify(value, trusting(public(exp=1), public("RS256", "k2")))

    assert report.verified
    assert [check.outcome for check in report.checks] == ["invalid", "verified"]
    assert [check.reason for check in report.failures] == ["the key has expired"]


@pytest.mark.req("AMB-87", "B129")
def test_one_good_signature_is_enough_and_a_bad_one_is_reported() -> None:
    value = signer("RS256", "k2").sign_json(signed(entry(card(name="Other"))))

    report = verify(value, trusting(public(), public("RS256", "k2")))

    assert report.verified
    assert [check.reason for check in report.failures] == ["signature does not match"]


def test_several_keys_of_one_name_are_tried() -> None:
    report = verify(signer().sign_json(card()), trusting(new_key("ES256", kid="k1").public.members, public()))

    assert report.verified


def test_no_more_than_sixteen_signatures_are_looked_at() -> None:
    assert len(verify(signed(*[{}] * 100)).checks) == 16


def test_algorithms_can_be_narrowed_down() -> None:
    report = verify(signer().sign_json(card()), trusting(algorithms=["RS256"]))

    assert report.checks[0].reason == "the algorithm ES256 is not accepted here"


@pytest.mark.req("AMB-87", "SIGN-16")
@pytest.mark.parametrize(
    ("value", "refused"),
    [
        (card(), {"required"}),
        (signer().sign_json(card()), set()),
        (signer(kid="unknown").sign_json(card()), {"required"}),
        (changed(signer().sign_json(card()), name="X"), {"if-present", "required"}),
        (signed({"protected": NONE, "signature": ""}), {"if-present", "required"}),
    ],
    ids=["unsigned", "good", "unknown key", "tampered", "alg none"],
)
def test_the_policy_decides_what_is_taken(value: Json, refused: set[str]) -> None:
    found = set()
    for mode in ("off", "if-present", "required"):
        policy = trusting(mode=mode)
        try:
            check_policy(verify(value, policy), policy, "here")
        except CardSignatureError:
            found.add(mode)

    assert found == refused


@pytest.mark.parametrize(
    "more",
    [
        {"mode": "maybe"}, {"algorithms": ["none"]}, {"algorithms": ["HS256"]}, {"algorithms": []},
        {"jku_origins": ["http://keys.example"]},
    ],
)  # fmt: skip
@pytest.mark.req("AMB-85", "AMB-86")
def test_a_policy_that_would_let_anything_pass_cannot_be_made(more: Any) -> None:
    with pytest.raises(ConfigurationError):
        SignaturePolicy(**more)


@pytest.mark.req("SIGN-18")
def test_a_trust_store_takes_sets_keys_and_files(tmp_path: Any) -> None:
    from joserfc.jwk import ECKey

    jwks, pem = tmp_path / "jwks.json", tmp_path / "key.pem"
    jwks.write_text(json.dumps({"keys": [public(), {"kty": "oct", "k": "AAAA"}, {"kty": "later"}, 5]}))
    pem.write_bytes(ECKey.import_key(public()).as_pem())

    store = TrustStore(jwks, str(pem), public("RS256", "k2"))

    assert [len(store.find(kid)) for kid in ("k1", "k2", "k3")] == [1, 1, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"keys": []}', "hold no public key"), ('{"keys": 5}', "keys is no list"), ("[]", "no object"),
        ("hello", "neither JSON nor PEM"), ('{"kty":"oct","k":"AAAA"}', "not a public one"),
    ],
)  # fmt: skip
def test_what_is_no_key_to_trust_is_refused(tmp_path: Any, text: str, words: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)

    with pytest.raises(ConfigurationError, match=words):
        TrustStore(file)


def test_a_private_key_is_refused_where_public_ones_belong(tmp_path: Any) -> None:
    file = tmp_path / "key.pem"
    file.write_bytes(key().pem())

    with pytest.raises(ConfigurationError, match="not a public one") as caught:
        TrustStore(file)
    assert "BEGIN" not in str(caught.value)


@pytest.mark.req("V03-P15")
def test_signatures_of_0_3_are_judged_by_who_knows_them_and_by_nobody_else() -> None:
    old = {**card(supportedInterfaces=None), "url": "https://agent.example/", "signatures": [entry(card())]}

    assert "have no form" in verify(old).checks[0].reason
    assert verify(old).outcome == "unverifiable"
    assert verify(old, trusting(older=lambda value: value["url"] == "https://agent.example/")).verified
    assert verify(old, trusting(older=lambda value: False)).outcome == "invalid"


def test_der_is_no_signature_of_ours() -> None:
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    good = entry(card())
    raw = decode_base64url(good["signature"])
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))

    assert verify(signed({**good, "signature": encode_base64url(der)})).outcome == "invalid"
