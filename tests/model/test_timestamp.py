"""Timestamps on the wire and in Python."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given

from dragoman.model import EncodingError, ListTasksRequest, TaskState, TaskStatus, Timestamp, encode_json
from tests.model.strategies import TIMESTAMPS

READ = {
    "2026-03-12T09:30:00.125Z": "2026-03-12T09:30:00.125Z",
    "2026-03-12T09:30:00Z": "2026-03-12T09:30:00.000Z",
    "2026-03-12T09:30:00.1Z": "2026-03-12T09:30:00.100Z",
    "2026-03-12T09:30:00.123456Z": "2026-03-12T09:30:00.123Z",
    "2026-03-12T09:30:00.999999999Z": "2026-03-12T09:30:00.999Z",
    "2026-03-12T09:30:00.125+02:00": "2026-03-12T07:30:00.125Z",
    "2026-03-12T23:30:00-05:30": "2026-03-13T05:00:00.000Z",
    "2026-03-12t09:30:00z": "2026-03-12T09:30:00.000Z",
    "2016-12-31T23:59:60Z": "2017-01-01T00:00:00.000Z",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999Z": "9999-12-31T23:59:59.999Z",
}

REFUSED = [
    "", "now", "2026-03-12", "2026-03-12T09:30:00", "2026-03-12 09:30:00Z", "2026-03-12T09:30Z", "2026-13-12T09:30:00Z",
    "2026-02-30T09:30:00.000Z", "2026-03-12T24:00:01.000Z", "2026-03-12T09:60:00Z", "2026-03-12T09:30:61Z",
    "2026-03-12T09:30:00.Z", "2026-03-12T09:30:00,125Z", "2026-03-12T09:30:00.1234567890Z", "2026-03-12T09:30:00+0200",
    "2026-03-12T09:30:00+25:00", "20260312T093000Z", "2026-W11-4T09:30:00.125Z", "2026-W11-4T09:30:00.12Z",
    "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", " 2026-03-12T09:30:00Z", "2026-03-12T09:30:00.125Z\n",
    "２０２６-03-12T09:30:00Z", "-026-03-12T09:30:00.125Z",
]  # fmt: skip


@pytest.mark.req("DATA-07", "DATA-09", "DATA-10", "DATA-11", "AMB-47")
@pytest.mark.parametrize("text", READ)
def test_any_rfc_3339_text_is_read_and_written_in_utc_with_milliseconds(text: str) -> None:
    assert Timestamp.parse(text).rfc3339() == READ[text]


@pytest.mark.req("DATA-09")
@pytest.mark.parametrize("text", REFUSED)
def test_other_text_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        Timestamp.parse(text)

    assert str(refused.value) == "must be RFC 3339 text such as 1970-01-01T00:00:00.000Z"


@pytest.mark.req("DATA-07", "DATA-08")
@given(TIMESTAMPS)
def test_what_is_written_reads_as_the_same_moment(moment: Timestamp) -> None:
    assert Timestamp.parse(moment.rfc3339()) == moment
    assert Timestamp.from_ms(moment.ms) == moment


@pytest.mark.req("DATA-08", "DATA-11")
def test_a_plain_datetime_in_a_message_becomes_a_timestamp_in_utc_with_milliseconds() -> None:
    local = datetime(2026, 3, 12, 14, 0, 0, 125_999, timezone(timedelta(hours=2)))

    status = TaskStatus(state=TaskState.WORKING, timestamp=local)

    assert type(status.timestamp) is Timestamp
    assert encode_json(status) == b'{"state":"TASK_STATE_WORKING","timestamp":"2026-03-12T12:00:00.125Z"}'


@pytest.mark.req("DATA-11")
def test_a_timestamp_in_another_zone_is_written_in_utc() -> None:
    there = Timestamp.parse("2026-03-12T09:30:00Z").astimezone(timezone(timedelta(hours=9)))

    assert encode_json(ListTasksRequest(status_timestamp_after=there)) == (
        b'{"statusTimestampAfter":"2026-03-12T09:30:00.000Z"}'
    )


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        TaskStatus(state=TaskState.WORKING, timestamp=datetime(2026, 3, 12))


def test_a_timestamp_made_without_a_zone_cannot_be_written() -> None:
    with pytest.raises(EncodingError):
        encode_json(TaskStatus(state=TaskState.WORKING, timestamp=Timestamp(2026, 3, 12)))


def test_arithmetic_and_copies_give_timestamps() -> None:
    moment = Timestamp.from_ms(1_000)

    for other in (moment + timedelta(0), copy.deepcopy(moment), pickle.loads(pickle.dumps(moment))):
        assert type(other) is Timestamp
        assert other == moment == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)


def test_milliseconds_beyond_the_calendar_are_an_overflow() -> None:
    with pytest.raises(OverflowError):
        Timestamp.from_ms(10**15)
