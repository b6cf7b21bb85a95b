"""The environment of a peer, when it cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import peers


@pytest.mark.timeout(300)
def test_a_peer_that_cannot_be_installed_is_unavailable_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{tmp_path}/no-such-folder\n", encoding="utf-8")
    monkeypatch.setattr(peers, "FOLDER", tmp_path / "environments")
    monkeypatch.setattr(peers, "PEERS", {"nobody": requirements})

    with pytest.raises(peers.PeerUnavailable, match=r"nobody could not be installed: .*no-such-folder"):
        peers.interpreter("nobody")


def test_an_environment_that_is_ready_is_not_made_again(sdk_python: Path) -> None:
    made = (peers.FOLDER / peers.SDK / ".ready").stat().st_mtime_ns

    again = peers.interpreter(peers.SDK)

    assert again == sdk_python
    assert (peers.FOLDER / peers.SDK / ".ready").stat().st_mtime_ns == made
