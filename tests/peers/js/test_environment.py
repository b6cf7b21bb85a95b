"""The packages of a peer for Node.js, when they cannot be had."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools import peers


def test_without_node_the_peer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)

    with pytest.raises(peers.PeerUnavailable, match=r"needs Node\.js 20 or newer with npm, which is not here"):
        peers.node(peers.JS_SDK)


@pytest.mark.timeout(300)
def test_packages_that_cannot_be_installed_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, js: peers.Node
) -> None:
    requirements = tmp_path / "package.json"
    requirements.write_text(f'{{"dependencies": {{"nothing": "file:{tmp_path}/nothing.tgz"}}}}', encoding="utf-8")
    monkeypatch.setattr(peers, "FOLDER", tmp_path / "environments")
    monkeypatch.setattr(peers, "NODE_PEERS", {"nobody": requirements})

    with pytest.raises(peers.PeerUnavailable, match="nobody could not be installed: "):
        peers.node("nobody")


def test_no_lock_file_is_made(js: peers.Node) -> None:
    assert not (js.modules / "package-lock.json").exists()
