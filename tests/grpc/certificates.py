"""Certificates for the tests, made on the spot."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes

    def save(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Both as files."""
        paths = folder / f"{name}.pem", folder / f"{name}-key.pem"
        paths[0].write_bytes(self.certificate)
        paths[1].write_bytes(self.key)
        return paths


class Authority:
    """A root that signs."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = _builder(self._name, self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self.root = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def sign(self, name: str, *addresses: str) -> Pair:
        """A certificate for a name, and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = _builder(_name(name), self._name, key).add_extension(x509.SubjectAlternativeName(names), False)
        certificate = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        plain = serialization.NoEncryption()
        return Pair(
            certificate, key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
    )
