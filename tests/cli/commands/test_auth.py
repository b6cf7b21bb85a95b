"""Logging in, and what a login is used for; the authorization server is a process of its own."""

from __future__ import annotations

import json
import os
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.auth.provider import CLIENT, PUBLIC, SECRET, Provider, provider_process
from tests.cli.commands.peer import Answer, Peer, Seen, events, result, serving, task
from tests.cli.commands.program import COMMAND, Done, Dragoman, finish, read_until
from tests.grpc.certificates import Authority

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes of files are those of POSIX")


@pytest.fixture(scope="session")
def _provider() -> Iterator[Provider]:
    with provider_process() as provider:
        yield provider


@pytest.fixture
def provider(_provider: Provider) -> Provider:
    _provider.control()
    return _provider


@pytest.fixture
def guarded(peer: Peer, provider: Provider) -> Peer:
    """An agent that is entered by OAuth, and takes whatever token comes."""
    flows = {
        "clientCredentials": {"tokenUrl": f"{provider.url}/token", "scopes": {}},
    }
    device = {"tokenUrl": f"{provider.url}/token", "deviceAuthorizationUrl": f"{provider.url}/device", "scopes": {}}
    openid = f"{provider.url}/.well-known/openid-configuration"
    peer.card["securitySchemes"] = {
        "corp": {"oauth2SecurityScheme": {"flows": {"deviceCode": device}}},
        "bot": {"oauth2SecurityScheme": {"flows": flows}},
        "people": {"openIdConnectSecurityScheme": {"openIdConnectUrl": openid}},
    }
    peer.card["securityRequirements"] = [
        {"schemes": {"corp": {"list": ["quote.read"]}}},
        {"schemes": {"bot": {"list": []}}},
        {"schemes": {"people": {"list": []}}},
    ]
    peer.play = lambda seen: result(seen, task())
    return peer


def log_in(dragoman: Dragoman, peer: Peer, *more: str, **env: str) -> Done:
    return dragoman.inside("auth", "login", "-a", peer.url, "--client-id", PUBLIC, *more, env=env)


def get(dragoman: Dragoman, peer: Peer, *more: str) -> Done:
    return dragoman.inside("task", "get", "t-1", "-a", peer.url, "-o", "json", *more)


def file_of(dragoman: Dragoman) -> Path:
    return dragoman.home / ".config" / "a2a-cli" / "dragoman" / "credentials.json"


def change(dragoman: Dragoman, **values: Any) -> None:
    """Change the one login that is kept."""
    path = file_of(dragoman)
    content = json.loads(path.read_text())
    content["logins"][0] |= values
    path.write_text(json.dumps(content))


def tokens_sent(peer: Peer) -> list[str]:
    return [seen.headers.get("authorization", "") for seen in peer.calls]


@pytest.mark.req("A2ACLI_AUTH_005", "A2ACLI_AUTH_007")
def test_a_login_by_device_code_tells_the_code_and_is_used_by_later_commands(
    dragoman: Dragoman, guarded: Peer, provider: Provider
) -> None:
    provider.control(device=["authorization_pending"])

    done = log_in(dragoman, guarded)
    used = get(dragoman, guarded)

    assert done.status == 0, done.err
    assert f"Verification URL: {provider.url}/activate\nUser code: KQZT-8842\nExpires: 20" in done.err
    assert [done.field(label) for label in ("Agent", "Scheme", "Flow", "Scopes", "Stored")] == [
        guarded.url,
        "corp",
        "device",
        "quote.read",
        "file",
    ]
    assert used.status == 0
    kept = json.loads(file_of(dragoman).read_text())["logins"][0]["accessToken"]
    assert tokens_sent(guarded) == [f"Bearer {kept}"]
    assert all(kept not in said for said in (done.out, done.err, used.out, used.err))


@pytest.mark.req("A2ACLI_AUTH_007", "SEC-05")
def test_the_store_is_for_its_user_alone(dragoman: Dragoman, guarded: Peer) -> None:
    log_in(dragoman, guarded)
    path = file_of(dragoman)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    refused = get(dragoman, guarded)

    assert (refused.status, refused.error["code"]) == (1, "DRAGOMAN_ERR_FILE")
    assert "chmod 600" in refused.error["hint"]
    assert guarded.calls == []
    assert get(dragoman, guarded, "--bearer", "explicit").status == 0


@pytest.mark.req("A2ACLI_AUTH_006")
def test_a_login_by_client_credentials_shows_the_secret_to_nobody_else(
    dragoman: Dragoman, guarded: Peer, provider: Provider
) -> None:
    done = dragoman.inside(
        *("auth", "login", "-a", guarded.url, "--scheme", "bot", "--client-id", CLIENT, "--debug", "-o", "json"),
        env={"DRAGOMAN_CLIENT_SECRET": SECRET},
    )

    assert done.status == 0, done.err
    assert done.json | {"expiresAt": ""} == {
        "agent": guarded.url,
        "scheme": "bot",
        "flow": "client-credentials",
        "scopes": [],
        "expiresAt": "",
        "store": "file",
    }
    stored = file_of(dragoman).read_text()
    assert SECRET not in stored + done.out + done.err
    assert json.loads(stored)["logins"][0]["accessToken"] not in done.err
    assert provider.grants() == ["client_credentials"]


@pytest.mark.req("A2ACLI_AUTH_006")
def test_the_secret_may_be_in_a_file_or_in_another_variable(dragoman: Dragoman, guarded: Peer, tmp_path: Path) -> None:
    place = tmp_path / "secret"
    place.write_text(f"{SECRET}\n")
    words = ("auth", "login", "-a", guarded.url, "--scheme", "bot", "--client-id", CLIENT)

    by_file = dragoman.inside(*words, "--client-secret-file", str(place))
    by_variable = dragoman.inside(*words, "--client-secret-env", "OURS", env={"OURS": SECRET})
    without = dragoman.inside(*words, "-o", "json")

    assert (by_file.status, by_variable.status) == (0, 0)
    assert (without.status, without.error["code"]) == (2, "A2ACLI_ERR_USAGE")
    assert "DRAGOMAN_CLIENT_SECRET" in without.error["hint"]


@pytest.mark.req("A2ACLI_AUTH_010")
def test_a_login_by_openid_connect_waits_for_the_browser(dragoman: Dragoman, guarded: Peer, provider: Provider) -> None:
    words = ("auth", "login", "-a", guarded.url, "--scheme", "people", "--flow", "auth-code", "--client-id", PUBLIC)
    process = dragoman.start(*words)

    before = read_until(process, b"Login URL: ")
    while b"\n" not in before.partition(b"Login URL: ")[2]:
        before += read_until(process, b"\n")
    url = before.partition(b"Login URL: ")[2].partition(b"\n")[0].decode()
    with httpx2.Client(follow_redirects=True, timeout=10) as browser:
        assert browser.get(url).status_code == 200
    done = finish(process, before)

    assert done.status == 0, done.err
    assert [done.field(label) for label in ("Scheme", "Flow", "Scopes")] == ["people", "auth-code", "openid"]
    assert get(dragoman, guarded).status == 0


@pytest.mark.req("A2ACLI_AUTH_010")
def test_a_forged_id_token_is_no_login(dragoman: Dragoman, guarded: Peer, provider: Provider) -> None:
    provider.control(forge=True)

    done = log_in(dragoman, guarded, "--scheme", "people", "-o", "json")

    assert (done.status, done.error["code"]) == (4, "A2ACLI_ERR_AUTH_FAILED")
    assert not file_of(dragoman).exists()


@pytest.mark.req("A2ACLI_AUTH_005", "A2ACLI_EXIT_001")
@pytest.mark.parametrize("answer", ["access_denied", "expired_token"])
def test_a_login_that_is_refused_ends_with_the_servers_word(
    dragoman: Dragoman, guarded: Peer, provider: Provider, answer: str
) -> None:
    provider.control(device=[answer])

    done = log_in(dragoman, guarded, "-o", "json")

    assert (done.status, done.error["code"]) == (4, "A2ACLI_ERR_AUTH_FAILED")
    assert answer in done.error["message"]


@pytest.mark.req("A2ACLI_AUTH_005", "A2ACLI_EXIT_001")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheme", "nobody"], "nobody"),
        (["--flow", "implicit"], "device, auth-code or client-credentials"),
        (["--client-secret-env", "A", "--client-secret-file", "b"], "exclude"),
    ],
)
def test_a_login_that_cannot_be_is_a_mistake_of_usage(
    dragoman: Dragoman, guarded: Peer, words: list[str], message: str
) -> None:
    done = log_in(dragoman, guarded, "-o", "json", *words)

    assert (done.status, done.error["code"]) == (2, "A2ACLI_ERR_USAGE")
    assert message in done.error["message"]


@pytest.mark.req("A2ACLI_AUTH_005")
def test_a_login_needs_the_id_of_a_client(dragoman: Dragoman, guarded: Peer) -> None:
    done = dragoman.inside("auth", "login", "-a", guarded.url, "-o", "json")
    named = dragoman.inside("auth", "login", "-a", guarded.url, env={"DRAGOMAN_CLIENT_ID": PUBLIC})

    assert (done.status, done.error["hint"]) == (2, "dragoman auth login --client-id ID")
    assert named.status == 0


@pytest.mark.req("A2ACLI_AUTH_007", "SEC-06")
def test_a_token_is_refreshed_a_minute_before_it_expires(dragoman: Dragoman, guarded: Peer, provider: Provider) -> None:
    log_in(dragoman, guarded)
    change(dragoman, expiresAt=time.time() + 59)
    before = json.loads(file_of(dragoman).read_text())["logins"][0]

    done = get(dragoman, guarded)

    after = json.loads(file_of(dragoman).read_text())["logins"][0]
    assert done.status == 0, done.err
    assert after["accessToken"] != before["accessToken"]
    assert after["refreshToken"] != before["refreshToken"]
    assert tokens_sent(guarded) == [f"Bearer {after['accessToken']}"]
    assert provider.grants()[-1] == "refresh_token"


@pytest.mark.req("A2ACLI_AUTH_007", "AUTH-06", "SEC-06")
def test_a_token_that_is_refused_is_refreshed_and_the_same_message_sent_once_more(
    dragoman: Dragoman, guarded: Peer
) -> None:
    def play(seen: Seen) -> Answer:
        if len(guarded.calls) == 1:
            return Answer(401, b"{}")
        return events(seen, {"task": task()})

    log_in(dragoman, guarded)
    guarded.play = play

    done = dragoman.inside("send", "-a", guarded.url, "hello")

    assert done.status == 0, done.err
    first, second = guarded.calls
    assert first.headers["authorization"] != second.headers["authorization"]
    assert first.message["messageId"] == second.message["messageId"]


@pytest.mark.req("A2ACLI_AUTH_007", "SEC-06")
def test_many_commands_at_once_spend_a_refresh_token_once(
    dragoman: Dragoman, guarded: Peer, provider: Provider
) -> None:
    log_in(dragoman, guarded)
    change(dragoman, expiresAt=time.time())
    words = [*COMMAND, "task", "get", "t-1", "-a", guarded.url]

    running = [
        subprocess.Popen(words, cwd=dragoman.folder, env=dragoman.environment, stderr=subprocess.PIPE) for _ in range(3)
    ]
    ended = [(process.communicate(timeout=60)[1], process.returncode) for process in running]

    assert [status for _, status in ended] == [0, 0, 0], ended
    assert provider.grants().count("refresh_token") == 1
    assert len(set(tokens_sent(guarded))) == 1


@pytest.mark.req("A2ACLI_AUTH_007", "A2ACLI_EXIT_001")
def test_a_login_that_cannot_be_refreshed_is_kept_and_the_way_to_another_one_told(
    dragoman: Dragoman, guarded: Peer, provider: Provider
) -> None:
    log_in(dragoman, guarded)
    provider.control(forget=True)
    change(dragoman, expiresAt=time.time())

    done = get(dragoman, guarded)

    assert (done.status, done.error["code"]) == (4, "A2ACLI_ERR_AUTH_FAILED")
    assert done.error["hint"] == f"dragoman auth login -a {guarded.url} --client-id {PUBLIC}"
    assert guarded.calls == []
    assert len(json.loads(file_of(dragoman).read_text())["logins"]) == 1


@pytest.mark.req("A2ACLI_AUTH_006", "A2ACLI_AUTH_007")
def test_client_credentials_are_fetched_anew_where_the_secret_still_is(dragoman: Dragoman, guarded: Peer) -> None:
    secret = {"DRAGOMAN_CLIENT_SECRET": SECRET}
    words = ("--scheme", "bot", "--client-id", CLIENT)
    dragoman.inside("auth", "login", "-a", guarded.url, *words, env=secret)
    change(dragoman, expiresAt=time.time())

    without = get(dragoman, guarded)
    anew = dragoman.inside("task", "get", "t-1", "-a", guarded.url, env=secret)

    assert without.error["code"] == "A2ACLI_ERR_AUTH_FAILED"
    assert anew.status == 0, anew.err


@pytest.mark.req("A2ACLI_AUTH_007", "SEC-05", "AUTH-04")
def test_a_stored_token_does_not_follow_the_card_to_another_origin(
    dragoman: Dragoman, guarded: Peer, provider: Provider
) -> None:
    log_in(dragoman, guarded)
    for entry in guarded.card["supportedInterfaces"]:
        entry["url"] = f"{provider.url}/elsewhere"
    provider.control()

    done = get(dragoman, guarded)

    assert (done.status, done.error["code"]) == (4, "DRAGOMAN_ERR_ORIGIN")
    assert done.error["hint"].startswith("dragoman auth login")
    assert provider.log() == []


@pytest.mark.req("A2ACLI_AUTH_007")
def test_an_explicit_credential_comes_before_a_stored_one_and_the_store_can_be_ignored(
    dragoman: Dragoman, guarded: Peer
) -> None:
    log_in(dragoman, guarded)

    explicit = get(dragoman, guarded, "--bearer", "explicit")
    ignored = get(dragoman, guarded, "--no-stored-token")
    none = dragoman.inside("task", "get", "t-1", "-a", guarded.url, "-o", "json", env={"DRAGOMAN_TOKEN_STORE": "none"})

    assert explicit.status == 0
    assert tokens_sent(guarded) == ["Bearer explicit"]
    assert [done.error["code"] for done in (ignored, none)] == ["A2ACLI_ERR_CREDENTIALS_MISSING"] * 2


@pytest.mark.req("A2ACLI_AUTH_007", "A2ACLI_CONFIG_001")
def test_logins_are_listed_and_forgotten(dragoman: Dragoman, guarded: Peer) -> None:
    log_in(dragoman, guarded)
    token = json.loads(file_of(dragoman).read_text())["logins"][0]["accessToken"]

    listed = dragoman.inside("auth", "status", "-o", "json")
    shown = dragoman.inside("auth", "status", "-a", guarded.url)
    settings = dragoman.inside("config", "show")
    out = dragoman.inside("auth", "logout", "-a", guarded.url)
    empty = dragoman.inside("auth", "status", "-o", "json")

    assert [(one["agent"], one["scheme"], one["clientId"]) for one in listed.json] == [(guarded.url, "corp", PUBLIC)]
    assert shown.field("Client") == PUBLIC
    assert f"token-store: {file_of(dragoman)} (1 login)" in settings.out
    assert all(token not in done.out + done.err for done in (listed, shown, settings))
    assert (out.out, empty.json) == ("Removed: 1\n", [])
    assert get(dragoman, guarded).error["code"] == "A2ACLI_ERR_CREDENTIALS_MISSING"


@pytest.mark.req("A2ACLI_AUTH_007")
def test_a_logout_of_nobody_is_a_mistake(dragoman: Dragoman) -> None:
    assert dragoman.inside("auth", "logout").status == 2
    assert dragoman.inside("auth", "logout", "--all").out == "Removed: 0\n"


@pytest.mark.req("A2ACLI_AUTH_007")
@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 2}', '{"version": 1, "logins": [{}]}'])
def test_a_store_that_cannot_be_read_is_said_to_be_so(dragoman: Dragoman, guarded: Peer, content: str) -> None:
    path = file_of(dragoman)
    path.parent.mkdir(parents=True)
    path.write_text(content)
    path.chmod(0o600)

    done = get(dragoman, guarded)

    assert (done.status, done.error["code"]) == (1, "DRAGOMAN_ERR_FILE")
    assert str(path) in done.error["hint"]


@pytest.mark.req("A2ACLI_AUTH_009", "AUTH-01", "AUTH-03")
def test_a_certificate_is_shown_where_the_agent_demands_one(dragoman: Dragoman, tmp_path: Path) -> None:
    authority = Authority("root of the tests")
    certificate, key = authority.sign("localhost", "127.0.0.1").save(tmp_path, "server")
    mine, my_key = authority.sign("ann").save(tmp_path, "mine")
    roots = tmp_path / "roots.pem"
    roots.write_bytes(authority.root)
    my_key.chmod(0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(roots)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(context) as peer:
        peer.play = lambda seen: result(seen, task())
        peer.card["securitySchemes"] = {"tls": {"mtlsSecurityScheme": {}}}
        peer.card["securityRequirements"] = [{"schemes": {"tls": {"list": []}}}]
        words = ("task", "get", "t-1", "-a", peer.url, "--ca-cert", str(roots), "-o", "json")
        pair = {"DRAGOMAN_CLIENT_CERT": str(mine), "DRAGOMAN_CLIENT_KEY": str(my_key)}

        shown = dragoman.inside(*words, env=pair)
        my_key.chmod(0o600)
        quiet = dragoman.inside(*words, "--client-cert", str(mine), "--client-key", str(my_key))
        without = dragoman.inside(*words)
        alone = dragoman.inside(*words, "--client-key", str(my_key))

    assert (shown.status, quiet.status) == (0, 0), shown.err
    assert f"the key in {my_key} can be read by others" in shown.err
    assert quiet.err == ""
    assert (without.status, without.error["code"]) == (3, "A2ACLI_ERR_UNREACHABLE"), without.err
    assert (alone.status, alone.error["code"]) == (2, "A2ACLI_ERR_USAGE")


@pytest.mark.req("A2ACLI_AUTH_009", "GRPC-01")
def test_a_certificate_is_shown_over_grpc(dragoman: Dragoman, tmp_path: Path) -> None:
    authority = Authority("root of the tests")
    certificate, key = authority.sign("localhost", "127.0.0.1").save(tmp_path, "server")
    mine, my_key = authority.sign("ann").save(tmp_path, "mine")
    my_key.chmod(0o600)
    roots = tmp_path / "roots.pem"
    roots.write_bytes(authority.root)
    script = tmp_path / "serve.py"
    script.write_text(
        "import asyncio\n"
        "from dragoman import App\n"
        "from dragoman.server import GrpcServerSettings, ServerTls\n"
        "from dragoman.server.grpc_serving import start_grpc\n"
        "from tests.grpc.agents import make_echo\n"
        "async def main():\n"
        "    async with App(make_echo()) as app:\n"
        f"        tls = ServerTls(certificate={str(certificate)!r}, key={str(key)!r}, client_roots={str(roots)!r})\n"
        "        server = await start_grpc(app, GrpcServerSettings(port=0, host='127.0.0.1', tls=tls))\n"
        "        print(server.port, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    try:
        assert process.stdout is not None
        url = f"https://127.0.0.1:{process.stdout.readline().strip()}"
        words = ("task", "list", "-e", url, "--transport", "GRPC", "--ca-cert", str(roots), "-o", "json")

        shown = dragoman(*words, "--client-cert", str(mine), "--client-key", str(my_key))
        without = dragoman(*words, "--connect-timeout", "2s")
    finally:
        process.kill()
        process.wait()

    assert shown.status == 0, shown.err + shown.out
    assert (without.status, without.error["code"]) == (3, "A2ACLI_ERR_UNREACHABLE"), without.err
