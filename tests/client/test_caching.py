"""How long a card may be used."""

from __future__ import annotations

import pytest

from dragoman.client.caching import read_freshness

DATE = "Tue, 01 Sep 2026 10:00:00 GMT"
LATER = "Tue, 01 Sep 2026 10:01:00 GMT"


@pytest.mark.req("CARD-22", "CARD-24")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 60),
        ({"cache-control": "public, max-age=300"}, 300),
        ({"cache-control": 'MAX-AGE="300"'}, 300),
        ({"cache-control": "max-age=300", "age": "100"}, 200),
        ({"cache-control": "max-age=300", "age": "1000"}, 0),
        ({"cache-control": "max-age=soon"}, 0),
        ({"cache-control": "no-cache, max-age=300"}, 0),
        ({"cache-control": "s-maxage=900"}, 60),
        ({"cache-control": "max-age=5", "expires": LATER, "date": DATE}, 5),
        ({"expires": LATER, "date": DATE}, 60),
        ({"expires": LATER, "date": DATE, "age": "20"}, 40),
        ({"expires": "0"}, 0),
    ],
)
def test_the_headers_say_how_long_a_card_is_fresh(headers: dict[str, str], seconds: float) -> None:
    found = read_freshness(headers, 60.0)

    assert (found.storable, found.seconds) == (True, seconds)


@pytest.mark.parametrize("headers", [{"cache-control": "no-store"}, {"vary": "*"}])
def test_what_must_not_be_stored_is_not(headers: dict[str, str]) -> None:
    assert read_freshness(headers, 60.0).storable is False


def test_validators_are_kept() -> None:
    found = read_freshness({"etag": 'W/"x"', "last-modified": DATE}, 60.0)

    assert (found.etag, found.last_modified) == ('W/"x"', DATE)
