"""SigV4 by hand, to check signatures without the library that makes them."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import quote

from tests.agentcore.client.front import KEYS
from tests.http.peer import Received


def authorization_parts(headers: Mapping[str, str]) -> dict[str, str]:
    """Credential, SignedHeaders and Signature of an ``authorization``."""
    return dict(re.findall(r"(\w+)=([^,\s]+)", headers["authorization"]))


def signed_names(headers: Mapping[str, str]) -> list[str]:
    return authorization_parts(headers)["SignedHeaders"].split(";")


def is_genuine(request: Received, secret: str = KEYS.secret_key) -> bool:
    """Whether a request as it came bears the signature of a secret."""
    parts = authorization_parts(request.headers)
    canonical = canonical_request(request, parts["SignedHeaders"].split(";"))
    _, day, region, service, end = parts["Credential"].split("/")
    scope = "/".join([day, region, service, end])
    text = "\n".join(
        ["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = f"AWS4{secret}".encode()
    for word in (day, region, service, end):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), parts["Signature"])


def canonical_request(request: Received, names: list[str]) -> str:
    path, _, query = request.target.partition("?")
    lines = [request.method, quote(path, safe="/~"), "&".join(sorted(query.split("&"))) if query else ""]
    lines += [f"{name}:{' '.join(request.headers[name].split())}" for name in names]
    return "\n".join([*lines, "", ";".join(names), hashlib.sha256(request.body).hexdigest()])
