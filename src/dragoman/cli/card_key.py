"""``dragoman card key new`` and ``card key jwks``. Spec: SIGN-12, SIGN-18; section 20.4 of the register."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dragoman.cli import text
from dragoman.cli.card_files import create_files, pretty, read_bytes
from dragoman.cli.failures import FileError, UsageError
from dragoman.cli.options import Leaf, Run, option
from dragoman.cli.program import run_client
from dragoman.cli.session import Session
from dragoman.jose import ALGORITHMS, BadKeyError, SigningKey, new_key, read_keys

PRIVATE, PUBLIC = "signing.pem", "jwks.json"


def _new(run: Run, alg: str, kid: str | None, out: str) -> int:
    folder = Path(out).expanduser()

    async def body(session: Session) -> int:
        key = new_key(alg, kid=kid or "")
        jwks = pretty({"keys": [key.public.members]}).encode()
        create_files({folder / PRIVATE: (key.pem(), 0o600), folder / PUBLIC: (jwks, 0o644)})
        _tell(session, key, folder)
        return 0

    return run_client(run, body)


def _tell(session: Session, key: SigningKey, folder: Path) -> None:
    private, public = str(folder / PRIVATE), str(folder / PUBLIC)
    if session.output.json:
        found = {"kid": key.kid, "algorithm": key.algorithm, "privateKey": private, "jwks": public}
        session.output.document(found)
        return
    record = text.Record()
    record.field("Key", key.kid)
    record.field("Algorithm", key.algorithm)
    record.field("Private key", private)
    record.field("Public keys", public)
    session.output.record(record)


def _jwks(run: Run, files: Sequence[str], kid: str | None) -> int:
    async def body(session: Session) -> int:
        if kid and len(files) > 1:
            raise UsageError("--kid names one key; give one file")
        members = [each for file in files for each in _public(file, kid or "")]
        if len({each.get("kid") for each in members}) < len(members):
            raise UsageError("two of the keys have the same kid")
        session.screen.write(pretty({"keys": members}))
        return 0

    return run_client(run, body)


def _public(file: str, kid: str) -> list[dict[str, Any]]:
    """The public keys in a file; of a private one its public half. Raises FileError."""
    data = read_bytes(file)
    try:
        keys = read_keys(data)
    except BadKeyError as error:
        try:
            keys = [SigningKey.read(data, kid=kid).public]
        except BadKeyError:
            raise FileError(f"{file} is no key: {error}") from error
    return [{**key.members, "use": "sig", **({"kid": kid} if kid else {})} for key in keys]


NEW = Leaf(
    "new",
    _new,
    f"Make a key pair to sign cards with: {PRIVATE}, for you alone, and {PUBLIC}, for everybody.",
    [
        option("--alg", metavar="NAME", words=tuple(ALGORITHMS), default="ES256", help="Algorithm of its signatures."),
        option("--kid", metavar="ID", help="Its identifier [default: its thumbprint]."),
        option("-O", "--out", metavar="DIR", default=".", help="Folder for the files, which must not be there yet."),
    ],
    calls_agents=False,
    examples=("dragoman card key new --kid pricing-2026 -O keys",),
)
JWKS = Leaf(
    "jwks",
    _jwks,
    "Print the public JWK set of keys in files: private or public, PEM or JWK, or sets of them.",
    [
        click.Argument(["files"], nargs=-1, required=True, metavar="FILE..."),
        option("--kid", metavar="ID", help="The identifier of the key, if there is one file."),
    ],
    calls_agents=False,
    examples=("dragoman card key jwks signing.pem --kid pricing-2026 > jwks.json",),
)
