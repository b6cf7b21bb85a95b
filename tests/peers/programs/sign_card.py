"""Signs or verifies a card with the official SDK, under its interpreter.

Standard input is ``{"card": …, "key": JWK, "header": {…}}``; with a private key the signed card is printed, with a
public one ``true`` or ``false``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_agent_card_signer, create_signature_verifier
from google.protobuf.json_format import MessageToDict, ParseDict
from jwt.api_jwk import PyJWK


def sign(card: AgentCard, key: PyJWK, header: dict[str, Any]) -> dict[str, Any]:
    signed = create_agent_card_signer(key, header)(card)
    return MessageToDict(signed)


def verify(card: AgentCard, key: PyJWK, algorithm: str) -> bool:
    try:
        create_signature_verifier(lambda kid, jku: key, [algorithm])(card)
    except SignatureVerificationError:
        return False
    return True


def main() -> None:
    given = json.load(sys.stdin)
    card = ParseDict(given["card"], AgentCard(), ignore_unknown_fields=True)
    algorithm = given["header"]["alg"]
    key = PyJWK(given["key"], algorithm)
    private = "d" in given["key"]
    print(json.dumps(sign(card, key, given["header"]) if private else verify(card, key, algorithm)))


if __name__ == "__main__":
    main()
