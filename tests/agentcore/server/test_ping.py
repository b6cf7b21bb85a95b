"""The ping state machine, without a clock: the vectors of the register, and its rules one by one."""

from __future__ import annotations

import logging
import threading
import tracemalloc

import pytest

from dragoman.agentcore.asking import Asking
from dragoman.agentcore.health import Health
from dragoman.agentcore.holding import Hold
from dragoman.agentcore.ping import PingMachine, Report, RestoreDetector, Status
from dragoman.agentcore.worker import SameLoop
from dragoman.errors import ConfigurationError

H, B = Status.HEALTHY, Status.BUSY


class Clocks:
    """Both clocks, set by the test."""

    def __init__(self, start: float = 1000.0) -> None:
        self.wall_time = start
        self.monotonic_time = start

    def wall(self) -> float:
        return self.wall_time

    def monotonic(self) -> float:
        return self.monotonic_time

    def go_to(self, moment: float) -> None:
        self.monotonic_time += moment - self.wall_time
        self.wall_time = moment


class Story:
    """A health whose events are told by their time."""

    def __init__(self, **settings: float) -> None:
        self.clocks = Clocks()
        self.health = Health(wall=self.clocks.wall, monotonic=self.clocks.monotonic, **settings)
        self.health.observe_clocks()
        self.health.ready()

    def at(self, moment: float) -> Health:
        self.clocks.go_to(moment)
        return self.health

    def ping(self, moment: float) -> tuple[Status, int]:
        self.clocks.go_to(moment)
        self.health.observe_clocks()
        report = self.health.report
        assert report is not None
        return tuple(report)


@pytest.mark.req("P1", "AC-S-61")
def test_an_idle_process_is_healthy_since_it_was_ready():
    story = Story()
    assert [story.ping(t) for t in (1002, 1500, 9999)] == [(H, 1000)] * 3


@pytest.mark.req("P2", "AC-S-63")
def test_a_turn_makes_busy_from_its_first_second_to_its_last():
    story = Story()
    assert story.ping(1009) == (H, 1000)
    story.at(1010.2).begun("turn")
    assert [story.ping(t) for t in (1011, 1025)] == [(B, 1010)] * 2
    story.at(1025.9).ended("turn")
    assert [story.ping(t) for t in (1026, 2000)] == [(H, 1025)] * 2


@pytest.mark.req("P3")
def test_turns_that_overlap_are_one_busy_time():
    story = Story()
    story.at(1010).begun("A")
    assert story.ping(1015) == (B, 1010)
    story.at(1020).begun("B")
    assert story.ping(1025) == (B, 1010)
    story.at(1030).ended("A")
    assert story.ping(1035) == (B, 1010)
    story.at(1040).ended("B")
    assert story.ping(1041) == (H, 1040)


@pytest.mark.req("P5", "AC-S-68")
def test_a_task_that_waits_for_its_caller_does_not_hold():
    story = Story()
    story.at(1010).begun("turn")
    story.at(1015).paused("turn")
    assert story.ping(1100) == (H, 1015)
    story.at(1300).begun("turn")
    assert story.ping(1301) == (B, 1300)
    story.at(1305).ended("turn")
    assert story.ping(1306) == (H, 1305)


@pytest.mark.req("AC-S-68")
def test_a_task_that_waits_may_hold_for_a_while():
    story = Story(linger=60)
    story.at(1010).begun("turn")
    story.at(1015).paused("turn")
    story.at(1015).ended("turn")
    assert story.ping(1074) == (B, 1010)
    assert story.ping(1200) == (H, 1075)


@pytest.mark.req("P9", "AC-S-65")
def test_a_forced_status_is_reported_and_ends():
    story = Story()
    story.at(1100).force("HealthyBusy")
    assert story.ping(1150) == (B, 1100)
    story.at(1200).clear()
    assert story.ping(1201) == (H, 1200)


@pytest.mark.req("P10", "AC-S-65")
def test_holds_are_counted_while_a_status_is_forced():
    story = Story()
    story.at(1001).begun("turn")
    assert story.ping(1003) == (B, 1001)
    story.at(1005).force(H)
    assert story.ping(1010) == (H, 1005)
    story.at(1020).clear()
    assert story.ping(1021) == (B, 1020)
    story.at(1050).ended("turn")
    assert story.ping(1051) == (H, 1050)


@pytest.mark.req("P12")
def test_a_stamp_never_goes_back_with_the_clock():
    story = Story()
    story.at(1010).begun("turn")
    story.at(990).ended("turn")
    assert story.ping(995) == (H, 1010)


@pytest.mark.req("P14")
def test_a_burst_between_two_pings_moves_the_stamp():
    story = Story()
    assert story.ping(1050) == (H, 1000)
    story.at(1050.5).begun("turn")
    story.at(1051.5).ended("turn")
    assert story.ping(1052) == (H, 1051)


@pytest.mark.req("P15", "AC-S-66")
def test_a_hold_released_twice_takes_nothing_from_others():
    story = Story()
    hold = story.at(1010).hold("index").acquire()
    story.at(1015).begun("turn")
    story.clocks.go_to(1020)
    hold.release()
    hold.release()
    assert story.ping(1025) == (B, 1010)
    story.at(1030).ended("turn")
    assert story.ping(1031) == (H, 1030)


@pytest.mark.req("P16", "AC-S-73")
def test_after_a_restore_the_stamp_is_renewed_once():
    story = Story()
    assert story.ping(1010) == (H, 1000)
    story.clocks.wall_time, story.clocks.monotonic_time = 50_000, 1011
    assert story.ping(50_000) == (H, 50_000)
    assert story.ping(50_010) == (H, 50_000)


@pytest.mark.req("AC-S-73")
def test_renewing_the_stamp_can_be_switched_off():
    clocks = Clocks()
    health = Health(wall=clocks.wall, monotonic=clocks.monotonic, restamp=False)
    health.observe_clocks()
    health.ready()
    clocks.wall_time = 50_000
    assert health.observe_clocks()
    assert health.report == (H, 1000)


@pytest.mark.req("P17", "AC-S-70")
def test_there_is_nothing_to_report_before_the_start_is_over():
    clocks = Clocks(999)
    health = Health(wall=clocks.wall, monotonic=clocks.monotonic)
    assert health.report is None
    clocks.go_to(1000)
    health.ready()
    assert health.report == (H, 1000)


def test_work_from_before_the_start_was_over_counts_from_then_on():
    clocks = Clocks(900)
    health = Health(wall=clocks.wall, monotonic=clocks.monotonic)
    health.begun("turn")
    clocks.go_to(1000)
    health.ready()
    assert health.report == (B, 1000)


@pytest.mark.req("AC-S-60")
def test_the_body_of_a_ping_is_exactly_this():
    assert Report(B, 1781230010).encode() == b'{"status":"HealthyBusy","time_of_last_update":1781230010}'


@pytest.mark.req("AC-S-62")
def test_a_thousand_pings_show_one_stamp():
    story = Story()
    assert {story.ping(1000 + second) for second in range(1000)} == {(H, 1000)}


@pytest.mark.req("AC-S-67")
def test_a_turn_that_is_too_old_does_not_count_and_is_logged(caplog: pytest.LogCaptureFixture):
    story = Story(turn_age=100)
    story.at(1010).begun("hung")
    assert story.ping(1109) == (B, 1010)
    assert story.ping(1300) == (H, 1110)
    story.at(1400).ended("hung")
    assert story.ping(1401) == (H, 1110)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_holds_that_run_out_end_at_their_own_time_whoever_comes_first():
    story = Story()
    story.at(1000).open(most=100)
    story.at(1050).begun("turn")
    story.at(1150).ended("turn")
    assert story.ping(1200) == (H, 1150)


@pytest.mark.req("AC-S-66")
def test_a_hold_ends_after_the_time_it_was_given():
    story = Story()
    with story.at(1010).hold("index", most=30):
        assert story.ping(1039) == (B, 1010)
        assert story.ping(1041) == (H, 1040)
    assert story.ping(1050) == (H, 1040)


@pytest.mark.req("AC-S-66")
async def test_holds_nest_and_survive_exceptions_sync_and_async():
    story = Story()
    hold = story.health.hold("work")

    @hold
    def plain() -> bool:
        return story.health.is_busy

    @hold
    async def coroutine() -> bool:
        return story.health.is_busy

    @hold
    def failing() -> None:
        raise ValueError

    assert plain()
    assert await coroutine()
    with pytest.raises(ValueError):
        failing()
    async with hold:
        with hold:
            pass
        assert story.health.is_busy
    assert not story.health.is_busy


@pytest.mark.req("AC-S-66")
def test_a_thousand_holds_in_threads_leave_none_behind():
    story = Story()

    def work() -> None:
        for _ in range(100):
            with story.health.hold():
                assert story.health.is_busy

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not story.health.is_busy


def test_a_hold_without_a_host_does_nothing():
    with Hold(lambda: None, "work", None) as hold:
        hold.release()


def test_what_cannot_be_held_is_refused():
    with pytest.raises(ConfigurationError):
        Story().health.hold("work", most=0)
    with pytest.raises(ConfigurationError):

        @Story().health.hold()
        def generator():
            yield


@pytest.mark.req("AC-S-65")
def test_a_status_that_is_none_cannot_be_forced():
    with pytest.raises(ConfigurationError):
        Story().health.force("Busy")


@pytest.mark.req("AC-S-69")
def test_a_ping_does_not_wait_for_a_lock_that_work_holds():
    story = Story(turn_age=10)
    story.at(1000).begun("turn")
    with story.health._lock:
        assert story.ping(2000) == (B, 1000)
    assert story.ping(2000) == (H, 1010)


@pytest.mark.req("AC-S-69")
def test_a_hundred_thousand_pings_leave_memory_as_it_was():
    story = Story()
    story.ping(1001)
    tracemalloc.start()
    for _ in range(1000):
        story.ping(1001)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(99_000):
        story.ping(1001)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000


# The handler.


def asking(story: Story, handler: object, limit: float = 0.9) -> Asking:
    return Asking(handler, story.health, SameLoop(), story.clocks.monotonic, limit)  # type: ignore[arg-type]


@pytest.mark.req("P11", "AC-S-65")
async def test_a_handler_that_raises_leaves_the_automatic_status_and_one_line(caplog: pytest.LogCaptureFixture):
    story = Story()

    def handler() -> str:
        raise ValueError("no")

    asked = asking(story, handler)
    story.at(1010).begun("turn")
    story.clocks.go_to(1015)
    await asked.ask()
    assert story.ping(1015) == (B, 1010)
    story.at(1020).ended("turn")
    story.clocks.go_to(1021)
    await asked.ask()
    assert story.ping(1021) == (H, 1020)
    assert len(caplog.records) == 1
    story.clocks.go_to(1080)
    await asked.ask()
    assert len(caplog.records) == 2


@pytest.mark.req("AC-S-65")
async def test_a_handler_is_over_automatic_and_under_forced():
    story = Story()
    said = [B]

    async def handler() -> Status:
        return said[0]

    asked = asking(story, handler)
    story.clocks.go_to(1010)
    await asked.ask()
    assert story.ping(1010) == (B, 1010)
    story.at(1020).force("Healthy")
    assert story.ping(1021) == (H, 1020)
    story.at(1030).clear()
    assert story.ping(1031) == (B, 1030)
    said[0] = H
    story.at(1040).begun("turn")
    assert story.ping(1041) == (B, 1030)
    await asked.ask()
    assert story.ping(1042) == (H, 1041)


@pytest.mark.req("AC-S-65")
@pytest.mark.parametrize("nonsense", ["Busy", None, 7, True])
async def test_nonsense_of_a_handler_during_a_turn_is_busy(nonsense: object):
    story = Story()
    asked = asking(story, lambda: nonsense)
    story.at(1010).begun("turn")
    await asked.ask()
    assert story.ping(1011) == (B, 1010)


@pytest.mark.req("AC-S-65")
async def test_a_handler_that_hangs_is_not_asked_again_before_it_returns():
    story = Story()
    calls, go_on = [], threading.Event()

    def handler() -> str:
        calls.append(1)
        go_on.wait(10)
        return "HealthyBusy"

    asked = asking(story, handler, limit=0.02)
    await asked.ask()
    await asked.ask()
    assert (len(calls), story.ping(1001)) == (1, (H, 1000))
    go_on.set()
    asked._limit = 5
    await asked.ask()
    assert story.ping(1001) == (B, 1001)


# The pure parts.


def test_a_machine_reports_nothing_when_it_can_serve_no_more():
    machine = PingMachine()
    machine.ready(10)
    machine.open(11)
    machine.unready()
    machine.open(12)
    assert machine.report is None


def test_a_small_jump_of_the_clock_is_no_restore():
    detector = RestoreDetector()
    assert [detector.observe(*clocks) for clocks in ((100, 10), (130, 11), (200, 12), (150, 12))] == [
        False,
        False,
        True,
        False,
    ]
