"""Protocol versions: reading and comparing ``A2A-Version``.

Spec: §3.6, VER-01 to VER-08, AMB-17, AMB-19.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.errors import VersionNotSupportedError

SUPPORTED = ("1.0",)


def parse_version(text: str) -> tuple[int, int] | None:
    """Major and minor of a version text; a patch part is ignored, a bare major is ``.0``. None when it is none."""
    numbers = text.strip().split(".")
    if len(numbers) > 3 or not all(n.isascii() and n.isdigit() and len(n) <= 6 for n in numbers):
        return None
    return int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0


def check_version(version: str, *, infer: bool = False, supported: Sequence[str] = SUPPORTED) -> None:
    """Raise VersionNotSupportedError unless ``version`` is served.

    An empty version means 0.3 and is refused with the remedy, unless ``infer`` takes a request that can only be 1.0
    as such. Spec: VER-07, VER-08, AMB-17.
    """
    if version in supported:
        return
    metadata = {"supportedVersions": ", ".join(supported)}
    if not version.strip():
        if infer:
            return
        raise VersionNotSupportedError(
            f"The A2A-Version header is missing, which means version 0.3; send A2A-Version: {supported[0]}",
            metadata=metadata,
        )
    named = parse_version(version)
    if named is None or named not in [parse_version(known) for known in supported]:
        shown = version if len(version) <= 32 and version.isprintable() else "that"
        raise VersionNotSupportedError(
            f"A2A version {shown} is not supported here; supported: {', '.join(supported)}", metadata=metadata
        )
