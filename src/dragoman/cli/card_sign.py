"""``dragoman card sign``. Spec: SIGN-01 to SIGN-14, SIGN-20, AMB-81; section 20.4 of the register."""

from __future__ import annotations

import os

import msgspec

from dragoman.card import CardSigner, SignaturePolicy, TrustStore, verify_card
from dragoman.card.canonical import Json, ambiguities
from dragoman.card.faults import find_faults
from dragoman.cli import text
from dragoman.cli.card_files import InvalidCardError, pretty, read_bytes, read_card_json, write_text
from dragoman.cli.failures import UsageError
from dragoman.cli.options import Leaf, Run, argument, option
from dragoman.cli.program import run_client
from dragoman.cli.session import Session
from dragoman.client.cards import card_from_value
from dragoman.jose import ALGORITHMS

_IMPLICIT = ("streaming", "pushNotifications", "extendedAgentCard")


def _sign(
    run: Run,
    file: str,
    key: str,
    kid: str,
    alg: str | None,
    jku: str | None,
    password_env: str | None,
    append: bool,
    out: str | None,
) -> int:
    async def body(session: Session) -> int:
        card = read_card_json(file)
        _check(card, file)
        signer = CardSigner(
            read_bytes(key), kid=kid, algorithm=alg or "", jku=jku or "", password=_password(password_env)
        )
        _warn(session, card)
        signed = signer.sign_json(card if append else {**card, "signatures": []})
        await _check_result(signed, signer)
        if out is None:
            session.screen.write(pretty(signed))
        else:
            write_text(out, pretty(signed))
            _tell(session, out, signer)
        return 0

    return run_client(run, body)


def _password(variable: str | None) -> str | None:
    if variable is None:
        return None
    if variable not in os.environ:
        raise UsageError(f"the variable {variable} is not set")
    return os.environ[variable]


def _check(card: Json, file: str) -> None:
    """Only what is a card is signed. Raises InvalidCardError."""
    if not card.get("supportedInterfaces"):
        raise InvalidCardError(f"{file} is no card of version 1.0: it names no supportedInterfaces")
    if not isinstance(card.get("signatures", []), list):
        raise InvalidCardError(f"{file} is no card: signatures is no list")
    for fault in find_faults(card_from_value(card, file)):
        raise InvalidCardError(f"{fault.text}; dragoman card lint {file} shows everything")


def _warn(session: Session, card: Json) -> None:
    capabilities = card.get("capabilities", {})
    for name in _IMPLICIT:
        if name not in capabilities:
            session.notes.warn(f"capabilities.{name} is not set; false is clearer, and cannot be read otherwise")
    for pointer in ambiguities(card):
        session.notes.warn(f"{pointer} is empty, a default, or unknown: verifiers differ about its signed form")


async def _check_result(signed: Json, signer: CardSigner) -> None:
    """Sign nothing that does not verify."""
    policy = SignaturePolicy(trust=TrustStore(signer.public_jwk), own_jku=False)
    report = await verify_card(msgspec.json.encode(signed), policy)
    if report.checks[-1].outcome != "verified":
        raise InvalidCardError(f"the card cannot be signed so that it verifies: {report.checks[-1]}")


def _tell(session: Session, out: str, signer: CardSigner) -> None:
    if session.output.json:
        session.output.document({"saved": out, "kid": signer.kid, "algorithm": signer.algorithm})
        return
    record = text.Record()
    record.field("Saved", out)
    record.field("Signature", f"verified (kid {signer.kid}, {signer.algorithm})")
    session.output.record(record)


SIGN = Leaf(
    "sign",
    _sign,
    "Sign a card in a file, and check the signature. Signatures that it has are replaced, unless --append is given.",
    [
        argument("file", "FILE", required=True),
        option("--key", metavar="FILE", required=True, help="Private key, PEM or JWK; see dragoman card key new."),
        option("--kid", metavar="ID", required=True, help="What verifiers look the key up by."),
        option("--alg", metavar="NAME", words=tuple(ALGORITHMS), help="Algorithm [default: by the kind of key]."),
        option("--jku", metavar="URL", help="The https address of a JWK set with the public key."),
        option("--password-env", metavar="NAME", help="Variable with the password of the private key."),
        option("--append", is_flag=True, help="Keep the signatures that are there, as when keys are rotated."),
        option("-O", "--out", metavar="FILE", help="Write the signed card there, not to standard output."),
    ],
    calls_agents=False,
    examples=("dragoman card sign card.json --key signing.pem --kid pricing-2026 -O card.signed.json",),
)
