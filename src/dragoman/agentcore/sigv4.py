"""The door to botocore, which knows SigV4 and where credentials are.

Spec: AC-C-80, AC-C-83, AC-C-85, AC-C-86; section 7.1 of the register.
"""

from __future__ import annotations

from dragoman.agentcore.arn import SERVICE
from dragoman.agentcore.errors import CredentialsNotFoundError
from dragoman.agentcore.keys import Keys, KeySource
from dragoman.errors import MissingExtraError
from dragoman.http.authentication import Outgoing

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
    import botocore.exceptions
    import botocore.session
except ImportError as error:
    raise MissingExtraError("SigV4, the signature of calls to AgentCore,", "agentcore") from error


def find_credentials(profile: str | None) -> KeySource | None:
    """Credentials by botocore's chain, None when there are none; may block. Raises CredentialsNotFoundError."""
    try:
        return botocore.session.Session(profile=profile).get_credentials()
    except botocore.exceptions.BotoCoreError as error:
        raise CredentialsNotFoundError(f"no AWS credentials: {type(error).__name__}") from error


def authorization(request: Outgoing, keys: Keys, region: str, date: str) -> str:
    """The value of ``authorization`` for a request of which every header is signed, ``x-amz-date`` being ``date``."""
    draft = botocore.awsrequest.AWSRequest(
        method=request.method, url=request.url, data=request.body, headers=dict(request.headers)
    )
    draft.context["timestamp"] = date
    frozen = botocore.credentials.ReadOnlyCredentials(keys.access_key, keys.secret_key, keys.token)
    signer = botocore.auth.SigV4Auth(frozen, SERVICE, region)
    text = signer.string_to_sign(draft, signer.canonical_request(draft))
    signed = signer.signed_headers(signer.headers_to_sign(draft))
    signature = signer.signature(text, draft)
    return f"AWS4-HMAC-SHA256 Credential={signer.scope(draft)}, SignedHeaders={signed}, Signature={signature}"
