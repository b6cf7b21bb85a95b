"""JSON Web Signatures and their keys: what card signatures, tokens and signed deliveries share.

The library behind it is loaded when a key is first used (extra ``auth``). Only algorithms with a public key are known:
there is no way to sign or verify with ``none`` or with a shared secret.
"""

from dragoman.jose.algorithms import ALGORITHMS
from dragoman.jose.encoding import decode_base64url, encode_base64url
from dragoman.jose.key_sets import KeySetError, KeySets
from dragoman.jose.keys import BadKeyError, PublicKey, SigningKey, new_key, read_keys

__all__ = [
    "ALGORITHMS",
    "BadKeyError",
    "KeySetError",
    "KeySets",
    "PublicKey",
    "SigningKey",
    "decode_base64url",
    "encode_base64url",
    "new_key",
    "read_keys",
]
