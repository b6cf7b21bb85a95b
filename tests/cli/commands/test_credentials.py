"""Credentials: where they go, and where they are never seen."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import peer as peers
from tests.cli.commands.peer import Answer, Peer, events, result, task
from tests.cli.commands.program import Dragoman

PLAIN = "s3cr3tvalue"


def guard(peer: Peer, *schemes: dict[str, object]) -> None:
    """Have the card ask for one of these schemes."""
    peer.card["securitySchemes"] = {f"s{number}": scheme for number, scheme in enumerate(schemes)}
    peer.card["securityRequirements"] = [{"schemes": {f"s{number}": {"list": []}}} for number in range(len(schemes))]


def api_key(location: str, name: str = "X-Key") -> dict[str, object]:
    """An API key scheme."""
    return {"apiKeySecurityScheme": {"location": location, "name": name}}


BEARER = {"httpAuthSecurityScheme": {"scheme": "Bearer"}}
BASIC = {"httpAuthSecurityScheme": {"scheme": "basic"}}
OAUTH = {
    "oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "https://id.example.com/t", "scopes": {}}}}
}


@pytest.mark.req("A2ACLI_AUTH_001", "A2ACLI_AUTH_008")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize(
    "scheme", [BEARER, OAUTH, {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://i.d"}}]
)
def test_a_bearer_token_goes_with_every_request_but_the_one_for_the_card(
    dragoman: Dragoman, peer: Peer, binding: str, scheme: dict[str, object]
) -> None:
    guard(peer, scheme)
    peer.play = lambda seen: (
        events(seen, {"task": task()}) if seen.operation == "SendStreamingMessage" else result(seen, task())
    )

    by_option = dragoman.inside("send", "-a", peer.url, "--transport", binding, "--bearer", PLAIN, "x")
    by_variable = dragoman.inside(
        "task", "get", "t-1", "-a", peer.url, "--transport", binding, env={"A2ACLI_BEARER": PLAIN}
    )

    assert (by_option.status, by_variable.status) == (0, 0)
    assert [seen.headers.get("authorization") for seen in peer.calls] == [f"Bearer {PLAIN}"] * len(peer.calls)
    assert all("authorization" not in seen.headers for seen in peer.seen if not seen.operation)


@pytest.mark.req("A2ACLI_AUTH_001")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_an_api_key_goes_where_the_card_says(dragoman: Dragoman, peer: Peer, binding: str) -> None:
    where = ("-a", peer.url, "--transport", binding, "--api-key", "k 1&2")
    peer.play = lambda seen: result(seen, task())
    for location in ("header", "query", "cookie"):
        guard(peer, api_key(location))
        assert dragoman.inside("task", "get", "t-1", *where, "--wait-mode", "poll").status == 0

    in_header, in_query, in_cookie = peer.calls
    assert in_header.headers["x-key"] == "k 1&2"
    assert in_query.query["X-Key"] == "k 1&2"
    assert in_cookie.headers["cookie"] == "X-Key=k 1&2"
    assert ["X-Key" in seen.query for seen in peer.calls] == [False, True, False]


@pytest.mark.req("A2ACLI_AUTH_001")
def test_the_first_alternative_that_can_be_met_is_used(dragoman: Dragoman, peer: Peer) -> None:
    guard(peer, BEARER, BASIC, api_key("header"))
    peer.play = lambda seen: result(seen, task())

    dragoman.inside("task", "get", "t-1", "-a", peer.url, "--basic", "me:pw", "--api-key", "k")
    dragoman.inside("task", "get", "t-1", "-a", peer.url, "--bearer", "b", "--api-key", "k", "--scheme", "s2")

    assert peer.calls[0].headers["authorization"] == "Basic bWU6cHc="
    assert "x-key" not in peer.calls[0].headers
    assert peer.calls[1].headers["x-key"] == "k"
    assert "authorization" not in peer.calls[1].headers


@pytest.mark.req("A2ACLI_AUTH_001", "A2ACLI_EXIT_001", "A2ACLI_OUT_004")
@pytest.mark.parametrize(
    ("scheme", "words", "hint"),
    [
        (BEARER, "http: Bearer", "export A2ACLI_BEARER=..."),
        (api_key("query"), "apiKey: query X-Key", "export A2ACLI_API_KEY=..."),
        (OAUTH, "oauth2: clientCredentials", "dragoman auth login -a {} --client-id ID"),
    ],
)
def test_without_a_credential_that_fits_nothing_is_sent(
    dragoman: Dragoman, peer: Peer, scheme: dict[str, object], words: str, hint: str
) -> None:
    guard(peer, scheme)

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "x")

    assert (done.status, done.error["code"], done.error["hint"]) == (
        4,
        "A2ACLI_ERR_CREDENTIALS_MISSING",
        hint.format(peer.url),
    )
    assert words in done.error["message"]
    assert peer.calls == []


@pytest.mark.req("A2ACLI_AUTH_001", "A2ACLI_EXIT_001")
def test_a_credential_that_is_rejected_is_another_failure(dragoman: Dragoman, peer: Peer) -> None:
    guard(peer, BEARER)
    peer.play = lambda seen: Answer(401, b"{}")

    done = dragoman.inside("send", "-a", peer.url, "-o", "json", "--bearer", "old", "x")

    assert (done.status, done.error["code"], done.error["a2aCode"]) == (4, "A2ACLI_ERR_AUTH_FAILED", 401)


@pytest.mark.req("A2ACLI_AUTH_001")
def test_where_no_card_says_anything_the_user_does(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task())
    endpoint = ("-e", f"{peer.url}/rpc", "--transport", "jsonrpc")

    dragoman.inside("task", "get", "t-1", *endpoint, "--bearer", "b", "--api-key", "k")
    bare = dragoman.inside("task", "get", "t-1", "-a", peer.url, "--api-key", "k")
    warned = dragoman.inside("task", "get", "t-1", "-a", peer.url, "--bearer", "b")

    assert (peer.calls[0].headers["authorization"], peer.calls[0].headers["x-api-key"]) == ("Bearer b", "k")
    assert (bare.status, len(peer.calls)) == (2, 2)
    assert "Warning: the card asks for no credential" in warned.err


@pytest.mark.req("A2ACLI_AUTH_001", "A2ACLI_AUTH_002")
def test_help_says_what_a_credential_on_the_command_line_risks(dragoman: Dragoman) -> None:
    text = " ".join(dragoman.inside("send", "--help", env={"A2ACLI_BEARER": PLAIN}).out.split())

    for option, variable in (("--bearer", "A2ACLI_BEARER"), ("--api-key", "A2ACLI_API_KEY")):
        entry = text[text.index(f"{option} ") :][:330]
        assert "process table" in entry
        assert "shell history" in entry
        assert variable in entry
    assert PLAIN not in text
    parameter = text[text.index("--svc-param") :].partition("--extension")[0].lower()
    assert not {"auth", "credential", "token"} & set(parameter.split())


@pytest.mark.req("A2ACLI_AUTH_002")
def test_an_option_beats_the_variable(dragoman: Dragoman, peer: Peer) -> None:
    guard(peer, BEARER)
    peer.play = lambda seen: result(seen, task())

    dragoman.inside("task", "get", "t-1", "-a", peer.url, "--bearer", "flag", env={"A2ACLI_BEARER": "environment"})

    assert peer.calls[0].headers["authorization"] == "Bearer flag"


@pytest.mark.req("A2ACLI_AUTH_003")
@pytest.mark.parametrize("output", ["text", "json"])
def test_turning_verification_off_is_never_silent(dragoman: Dragoman, peer: Peer, output: str) -> None:
    peer.play = lambda seen: events(seen, {"task": task()})
    run = ("send", "-a", peer.url, "-o", output, "--insecure", "x")

    without = dragoman.inside(*run)
    with_one = dragoman.inside(*run, "--bearer", "b")
    safe = dragoman.inside("send", "-a", peer.url, "x")

    assert "Warning: certificates are not verified (--insecure)\n" in without.err
    assert "Warning: certificates are not verified (--insecure); a credential is sent" in with_one.err
    assert "certificates" not in safe.err


@pytest.mark.req("A2ACLI_AUTH_003", "A2ACLI_EXIT_001")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_is_verified_unless_that_is_turned_off_or_it_is_trusted(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate),
            *("-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with peers.serving(context) as peer:
        peer.play = lambda seen: result(seen, task())
        run = ("task", "get", "t-1", "-a", peer.url, "-o", "json")

        refused = dragoman.inside(*run)
        insecure = dragoman.inside(*run, "--insecure", "--bearer", PLAIN)
        trusted = dragoman.inside(*run, "--ca-cert", certificate)

    assert (refused.status, refused.error["code"]) == (3, "A2ACLI_ERR_UNREACHABLE")
    assert "TLS" in refused.error["message"]
    assert (insecure.status, trusted.status, trusted.err) == (0, 0, "")
    assert "Warning: certificates are not verified" in insecure.err


@pytest.mark.req("A2ACLI_AUTH_004", "A2ACLI_OUT_007")
@pytest.mark.parametrize("location", ["header", "query", "cookie"])
def test_no_secret_is_ever_shown_not_even_one_that_the_agent_repeats(
    dragoman: Dragoman, peer: Peer, location: str
) -> None:
    guard(peer, api_key(location))
    echo = task(artifacts=[{"artifactId": "a", "parts": [{"text": f"key {PLAIN}, token {PLAIN}"}]}])
    peer.play = lambda seen: events(seen, {"task": echo})

    done = dragoman.inside(
        *("send", "-a", peer.url, "--debug", "--verbose", "--api-key", PLAIN, "hello"),
        *(
            "--svc-param",
            f"X-Session:{PLAIN}2",
            "--card-header",
            f"X-Gate: {PLAIN}3",
            "--svc-param",
            "traceparent:00-1",
        ),
    )
    failed = dragoman.inside("task", "get", PLAIN, "-a", "http://127.0.0.1:1", "--debug", "--api-key", PLAIN)
    shown = dragoman.inside("config", "show", env={"A2ACLI_API_KEY": PLAIN, "A2ACLI_BEARER": PLAIN})

    assert done.status == 0
    assert PLAIN not in done.err
    assert "<redacted>" in done.err
    assert "traceparent: 00-1" in done.err
    assert PLAIN not in failed.err
    assert PLAIN not in shown.out
    assert "api-key: <redacted> (environment A2ACLI_API_KEY)" in shown.out


@pytest.mark.req("A2ACLI_OUT_007")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_debug_shows_the_messages_of_both_sides_and_changes_no_payload(
    dragoman: Dragoman, peer: Peer, binding: str
) -> None:
    peer.play = lambda seen: events(seen, {"task": task()})
    run = ("send", "-a", peer.url, "--transport", binding, "--message-id", "m-1", "hello")

    plain, debug = dragoman.inside(*run), dragoman.inside(*run, "--debug")

    assert debug.out == plain.out
    assert "> GET " in debug.err
    assert '"messageId":"m-1"' in debug.err
    assert "< data: {" in debug.err
    assert "> a2a-version: 1.0" in debug.err


@pytest.mark.req("A2ACLI_AUTH_008")
def test_a_header_for_the_card_goes_to_the_card_alone(dragoman: Dragoman, peer: Peer) -> None:
    peer.play = lambda seen: result(seen, task())

    dragoman.inside("task", "get", "t-1", "-a", peer.url, "--card-header", "X-Gate: g", "--svc-param", "X-Other=o")

    card, call = peer.seen
    assert (card.headers["x-gate"], call.headers["x-other"]) == ("g", "o")
    assert "x-other" not in card.headers
    assert "x-gate" not in call.headers


@pytest.mark.req("A2ACLI_CARD_GET_003", "A2ACLI_VER_003")
def test_the_extended_card_needs_a_scheme_that_the_card_declares(dragoman: Dragoman, peer: Peer) -> None:
    peer.reset(streaming=True, extendedAgentCard=True)
    undeclared = dragoman.inside("card", "get", "-a", peer.url, "--extended", "--bearer", "b", "-o", "json")
    calls = len(peer.calls)
    guard(peer, BEARER)
    peer.play = lambda seen: result(seen, {**peer.card, "name": "Extended"})

    extended = dragoman.inside("card", "get", "-a", peer.url, "--extended", "--bearer", "b", "-o", "json")

    assert (undeclared.status, undeclared.error["code"], calls) == (4, "A2ACLI_ERR_CREDENTIALS_MISSING", 0)
    assert extended.json["name"] == "Extended"
    assert peer.calls[0].headers["authorization"] == "Bearer b"
