"""From what names a runtime to its addresses."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.agentcore.arn import parse_arn
from dragoman.agentcore.runtime_address import find_address, recognize
from dragoman.errors import ConfigurationError
from tests.agentcore.client.front import ARN, ESCAPED

HOST = "https://bedrock-agentcore.eu-west-1.amazonaws.com"
CALLS = f"{HOST}/runtimes/{ESCAPED}/invocations/"


@pytest.mark.req("AC-C-01")
def test_an_arn_is_one_escaped_segment_of_the_path() -> None:
    assert find_address(ARN).invocations == CALLS


@pytest.mark.req("AC-C-01")
@pytest.mark.parametrize(
    ("partition", "region", "suffix"),
    [
        ("aws", "us-east-1", "amazonaws.com"),
        ("aws-cn", "cn-north-1", "amazonaws.com.cn"),
        ("aws-us-gov", "us-gov-west-1", "amazonaws.com"),
        ("aws-eusc", "eusc-de-east-1", "amazonaws.eu"),
        ("aws-iso-b", "us-isob-east-1", "sc2s.sgov.gov"),
    ],
)
def test_the_host_is_that_of_the_partition(partition: str, region: str, suffix: str) -> None:
    arn = ARN.replace("arn:aws:", f"arn:{partition}:").replace("eu-west-1", region)

    assert find_address(arn).invocations.startswith(f"https://bedrock-agentcore.{region}.{suffix}/runtimes/")


@pytest.mark.req("AC-C-02")
@pytest.mark.parametrize(
    "target",
    [
        "evil.example/#",
        "arn:aws:bedrock-agentcore:evil.example/#:111122223333:runtime/ledger_bot-Qw3rTy7UiO",
        "arn:aws:bedrock-agentcore:eu-west-1@evil:111122223333:runtime/ledger_bot-Qw3rTy7UiO",
        "arn:aws:bedrock-agentcore:eu-west-1:1111:runtime/ledger_bot-Qw3rTy7UiO",
        "arn:aws:bedrock-agentcore:eu-west-1:111122223333:runtime/../x",
        "arn:aws:s3:::bucket",
        ARN + "\n",
        "",
    ],
)
def test_what_is_no_arn_never_becomes_a_host(target: str) -> None:
    with pytest.raises(ConfigurationError):
        find_address(target)


@pytest.mark.req("AC-C-02")
@pytest.mark.parametrize("region", ["evil.example/#", "EU-WEST-1", "eu-west-1.evil", "a", "eu west 1", "eu-west-1\n"])
def test_a_region_is_lower_case_letters_digits_and_hyphens(region: str) -> None:
    with pytest.raises(ConfigurationError):
        find_address(ARN, region=region)


@pytest.mark.req("AC-C-02")
def test_a_region_may_override_that_of_the_arn() -> None:
    address = find_address(ARN, region="eu-central-1")

    assert address.region == "eu-central-1"
    assert address.invocations.startswith("https://bedrock-agentcore.eu-central-1.amazonaws.com/")


@pytest.mark.req("AC-C-03")
def test_a_bare_id_is_called_with_its_account_and_its_card_is_asked_for_by_the_arn() -> None:
    address = find_address("ledger_bot-Qw3rTy7UiO", region="eu-west-1", account="111122223333")

    assert address.invocations == f"{HOST}/runtimes/ledger_bot-Qw3rTy7UiO/invocations/?accountId=111122223333"
    assert address.card == f"{CALLS}.well-known/agent-card.json"
    assert address.stop == f"{HOST}/runtimes/{ESCAPED}/stopruntimesession"
    assert address.covers(address.invocations)
    assert address.covers(address.card)


@pytest.mark.req("AC-C-03")
@pytest.mark.parametrize("more", [{}, {"region": "eu-west-1"}, {"account": "111122223333"}])
def test_a_bare_id_needs_region_and_account(more: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="region and an account"):
        find_address("ledger_bot-Qw3rTy7UiO", **more)


@pytest.mark.req("AC-C-04")
def test_the_qualifier_is_on_calls_card_metadata_and_stop() -> None:
    address = find_address(ARN, qualifier="prod")

    for url in (address.invocations, address.card, address.resource_metadata, address.stop):
        assert url.endswith("?qualifier=prod")


def test_the_arn_of_an_endpoint_names_the_qualifier() -> None:
    assert find_address(f"{ARN}/runtime-endpoint/prod").invocations == f"{CALLS}?qualifier=prod"


@pytest.mark.req("AC-C-05")
def test_the_host_can_be_another() -> None:
    assert find_address(ARN, endpoint="http://127.0.0.1:8123/").invocations.startswith("http://127.0.0.1:8123/runtimes")
    vpc = "https://vpce-0a1b-2c3d.bedrock-agentcore.eu-west-1.vpce.amazonaws.com"
    assert find_address(ARN, endpoint=vpc).invocations.startswith(f"{vpc}/runtimes/arn%3A")
    assert find_address(ARN, fips=True).origin == "https://bedrock-agentcore-fips.eu-west-1.amazonaws.com"
    assert find_address(ARN, dual_stack=True).origin == "https://bedrock-agentcore.eu-west-1.api.aws"


@pytest.mark.req("AC-C-05")
def test_plain_http_is_for_this_machine_unless_it_is_allowed() -> None:
    assert find_address(ARN, endpoint="http://localhost:1").origin == "http://localhost:1"
    with pytest.raises(ConfigurationError, match="http://"):
        find_address(ARN, endpoint="http://front.example")
    assert find_address(ARN, endpoint="http://front.example", allow_http=True).origin == "http://front.example"


@pytest.mark.req("AC-C-07")
@pytest.mark.parametrize(
    "url",
    [
        CALLS,
        CALLS.rstrip("/"),
        f"{CALLS}.well-known/agent-card.json?qualifier=prod",
        CALLS.replace("eu-west-1.amazonaws.com", "eu-west-1.api.aws"),
        CALLS.replace("bedrock-agentcore.eu", "bedrock-agentcore-fips.eu", 1),
        CALLS.replace("eu-west-1.amazonaws.com", "cn-north-1.amazonaws.com.cn"),
        f"https://vpce-0a1b-2c3d.bedrock-agentcore.eu-west-1.vpce.amazonaws.com/runtimes/{ESCAPED}/invocations/",
    ],
)
def test_a_url_of_agentcore_is_recognized(url: str) -> None:
    assert recognize(url)


@pytest.mark.req("AC-C-07")
@pytest.mark.parametrize(
    "url",
    [
        "https://agent.example/.well-known/agent-card.json",
        CALLS.replace("amazonaws.com", "amazonaws.com.evil.example"),
        CALLS.replace("https://", "https://evil.example/"),
        CALLS.replace("https", "http"),
        CALLS.replace("amazonaws.com", "amazonaws.com:8443"),
        f"{HOST}/runtimes/{ESCAPED}/stopruntimesession",
        f"{HOST}/other/{ESCAPED}/invocations/",
        "not a url",
    ],
)
def test_other_urls_are_not(url: str) -> None:
    assert not recognize(url)


@pytest.mark.req("AC-C-07")
def test_a_card_url_leads_to_the_same_addresses_as_the_arn() -> None:
    from_url = find_address(f"{CALLS}.well-known/agent-card.json?qualifier=prod")
    from_arn = find_address(ARN, qualifier="prod")

    assert (from_url.invocations, from_url.card, from_url.region) == (from_arn.invocations, from_arn.card, "eu-west-1")


@pytest.mark.req("AC-C-23")
@pytest.mark.parametrize(
    "url",
    [
        CALLS.replace("ledger_bot", "other_bot"),
        CALLS.replace("https", "http"),
        CALLS.replace("eu-west-1.amazonaws.com", "eu-west-2.amazonaws.com"),
        f"{HOST}/runtimes/{ESCAPED}/../other/invocations/",
        f"{HOST}//runtimes/{ESCAPED}/invocations/",
        f"{HOST}/runtimes/{ESCAPED}x/invocations/",
        f"{HOST}/",
    ],
)
def test_an_address_covers_nothing_but_its_own_runtime(url: str) -> None:
    assert not find_address(ARN).covers(url)


@pytest.mark.req("AC-C-62")
def test_a_card_may_escape_the_arn_less() -> None:
    address = find_address(ARN)

    assert address.is_named_by(CALLS.replace("%3A", "%3a").replace("%2F", "%2f"))
    assert address.is_named_by(f"{HOST}/runtimes/{ESCAPED.replace('%3A', ':')}/invocations")
    assert not address.is_named_by("http://localhost:9000/")


def test_an_arn_is_shown_as_it_was_read() -> None:
    assert str(parse_arn(ARN)) == ARN


def test_a_url_takes_neither_endpoint_nor_account() -> None:
    options: dict[str, Any] = {"endpoint": "https://front.example"}
    with pytest.raises(ConfigurationError):
        find_address(CALLS, **options)
