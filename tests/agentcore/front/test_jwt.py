"""Bearer tokens: challenges, refusals, and the stub of an authorization server."""

from __future__ import annotations

import httpx2
import pytest

from dragoman.testing.agentcore_front import AuthorizationServer, Fault, FrontSettings, Jwt
from dragoman.testing.agentcore_front.authorization_server import CLIENT_ID, CLIENT_SECRET
from dragoman.testing.agentcore_front.tokens import mint
from tests.agentcore.front.parts import Container, ManualClock, rehearsal, rpc, signed_headers

ISSUER = "https://login.harbour.example/pool-9"


def jwt() -> Jwt:
    return Jwt(ISSUER, audiences=("tides",), clients=("desk",), scopes=("tides/read",))


def challenge_of(answer: httpx2.Response) -> str:
    """The challenge of a 401, whose body reuses a code of A2A and has no id."""
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == -32001
    assert "id" not in answer.json()
    return answer.headers["www-authenticate"]


@pytest.mark.req("AC-F-08", "AC-F-01")
async def test_without_a_token_there_is_a_challenge_that_names_the_metadata(container: Container) -> None:
    async with rehearsal(container, auth=jwt()) as caller:
        base = caller.front.invocation_url
        answers = [await caller.post(), await caller.card(), await caller.post(authorization="Basic YTpi")]
        place = f"{base}.well-known/oauth-protected-resource?qualifier=DEFAULT"
        document = (await caller.get(place, session=None)).json()

    for answer in answers:
        assert challenge_of(answer) == f'Bearer resource_metadata="{place}", scope="tides/read"'
    assert answers[0].json()["error"]["message"] == "Missing Authentication Token"
    assert document == {
        "resource": f"{base.rstrip('/')}?qualifier=DEFAULT",
        "authorization_servers": [ISSUER],
        "scopes_supported": ["tides/read"],
    }


@pytest.mark.req("AC-F-08")
@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"exp": 1}, "expired"),
        ({"exp": None}, "expired"),
        ({"iss": "https://elsewhere.example"}, "'iss'"),
        ({"aud": "ebbs"}, "'aud'"),
        ({"aud": ["ebbs", "tides"], "client_id": "other"}, "'client_id'"),
        ({"scope": "tides/write"}, "'scope'"),
    ],
)
async def test_a_token_with_a_wrong_claim_is_told_so(container: Container, claims: dict, text: str) -> None:
    auth = jwt()
    async with rehearsal(container, auth=auth) as caller:
        answer = await caller.post(authorization=f"Bearer {auth.mint(caller.front.now(), **claims)}")

    assert 'error="invalid_token"' in challenge_of(answer)
    assert text in answer.json()["error"]["message"]
    assert "resource_metadata=" in answer.headers["www-authenticate"]
    assert container.posts == []


@pytest.mark.req("AC-F-08")
async def test_a_good_token_is_taken_until_it_expires(container: Container, clock: ManualClock) -> None:
    auth = jwt()
    async with rehearsal(container, auth=auth, clock=clock) as caller:
        token = auth.mint(clock.now, lifetime=60, aud=["ebbs", "tides"], scope="tides/read more")
        good = await caller.post(authorization=f"bearer {token}")
        forged = await caller.post(authorization=f"Bearer {mint({'iss': ISSUER}, 'another secret')}")
        clock.advance(60)
        late = await caller.post(authorization=f"Bearer {token}")

    assert good.status_code == 200
    assert "invalid_token" in challenge_of(forged)
    assert "expired" in challenge_of(late)


@pytest.mark.req("AC-F-08")
async def test_what_is_no_token_and_what_is_signed_are_refused_without_a_challenge(container: Container) -> None:
    async with rehearsal(container, auth=jwt()) as caller:
        answers = [await caller.post(authorization=f"Bearer {token}") for token in ("nonsense", "a.b.c", "e30.e30.!")]
        headers = signed_headers("POST", caller.front.invocation_url, rpc())
        signed = await caller.post(**{name.replace("-", "_"): value for name, value in headers.items()})

    assert {answer.status_code for answer in (*answers, signed)} == {403}
    assert {answer.json()["message"] for answer in answers} == {"OAuth authorization failed: Failed to parse token"}
    assert "mismatch" in signed.json()["message"]
    assert not any("www-authenticate" in answer.headers for answer in (*answers, signed))


async def test_a_caller_with_a_token_may_not_name_a_user(container: Container) -> None:
    auth = jwt()
    async with rehearsal(container, auth=auth) as caller:
        bearer = f"Bearer {auth.mint(caller.front.now())}"
        answer = await caller.post(authorization=bearer, x_amzn_bedrock_agentcore_runtime_user_id="somebody")

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32052)


async def test_metadata_can_be_blocked_and_other_runtimes_have_none(container: Container) -> None:
    async with rehearsal(container, auth=jwt()) as caller:
        place = f"{caller.front.invocation_url}.well-known/oauth-protected-resource"
        caller.front.fail_next(Fault.ACCESS_DENIED, path="oauth-protected-resource")
        blocked = await caller.get(place)
    async with rehearsal(container) as caller:
        none = await caller.get(place.replace(place[:22], caller.front.url[:22]))

    assert blocked.status_code == 403
    assert none.status_code == 404


@pytest.mark.req("AC-F-09")
@pytest.mark.parametrize("forms", [("oidc",), ("rfc8414",), ("oidc", "rfc8414")])
async def test_an_authorization_server_is_found_in_the_form_that_it_has(forms) -> None:
    async with AuthorizationServer(forms=forms) as server, httpx2.AsyncClient(trust_env=False) as client:
        origin, _, pool = server.issuer.rpartition("/")
        places = {
            "oidc": f"{server.issuer}/.well-known/openid-configuration",
            "rfc8414": f"{origin}/.well-known/oauth-authorization-server/{pool}",
        }
        answers = {form: await client.get(place) for form, place in places.items()}

        for form, answer in answers.items():
            assert answer.status_code == (200 if form in forms else 400)
            if form in forms:
                assert answer.json()["issuer"] == server.issuer
                assert answer.json()["token_endpoint"].startswith(server.issuer)
        assert server.metadata_calls == len(forms)


@pytest.mark.req("AC-F-09", "AC-F-08")
async def test_a_token_of_the_authorization_server_opens_the_front(container: Container) -> None:
    grant = {"grant_type": "client_credentials"}
    async with AuthorizationServer(scopes=("tides/read",)) as server, httpx2.AsyncClient(trust_env=False) as client:
        place = f"{server.issuer}/oauth2/token"
        basic = await client.post(place, data=grant, auth=(CLIENT_ID, CLIENT_SECRET))
        posted = await client.post(place, data={**grant, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET})
        wrong = await client.post(place, data=grant, auth=(CLIENT_ID, "guessed"))
        other = await client.post(place, data={"grant_type": "password"})
        async with rehearsal(container, auth=server.jwt) as caller:
            answers = [
                await caller.post(authorization=f"Bearer {token.json()['access_token']}") for token in (basic, posted)
            ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    assert (other.status_code, other.json()["error"]) == (400, "unsupported_grant_type")
    assert server.token_calls == 4
    assert basic.json()["expires_in"] == 3_600


def test_a_front_of_tokens_keeps_its_secret() -> None:
    auth = Jwt(ISSUER, secret="not-a-real-secret")

    assert "not-a-real-secret" not in repr(auth)
    assert FrontSettings().allow_list == ()
