"""The sorted keys of the memory store against the plain way to do it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model import TaskState
from dragoman.ports.store import Scope, TaskQuery
from dragoman.stores import MemoryStore, shelves
from dragoman.stores.shelves import Shelved, Shelves, find_page
from dragoman.testing.sample_task import START_MS, SampleTask

STATES = (TaskState.WORKING, TaskState.COMPLETED)
ids = st.integers(0, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), ids, st.integers(0, 5), st.sampled_from(STATES)),
        st.tuples(st.just("remove"), ids),
        st.tuples(st.just("look")),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(steps, st.integers(1, 50))
def test_shelves_hold_what_sorting_everything_would_give(moves: list[tuple[object, ...]], settle_at: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelves, "_SETTLE_AT", settle_at)
        _play(moves)


def _play(moves: list[tuple[object, ...]]) -> None:
    tested, items = Shelves(), dict[object, Shelved]()
    for verb, *rest in [*moves, ("look",)]:
        if verb == "put":
            _put(tested, items, *rest)
        elif verb == "remove" and rest[0] in items:
            tested.remove(items.pop(rest[0]))
        elif verb == "look":
            _compare(tested, list(items.values()))


def _put(tested: Shelves, items: dict[object, Shelved], n: object, at: object, state: object) -> None:
    assert isinstance(at, int)
    assert isinstance(state, TaskState)
    key = (at, f"task-{n}")
    if n in items:
        items[n].key, items[n].state = key, state
        tested.note(items[n])
    else:
        items[n] = Shelved(f"context-{int(str(n)) % 3}", key, state)
        tested.add(items[n])


def _compare(tested: Shelves, items: list[Shelved]) -> None:
    assert tested.size == len(items)
    assert tested.shelf("") == sorted(item.key for item in items)
    for state in STATES:
        assert tested.shelf(state) == sorted(item.key for item in items if item.state is state)
    for context in {item.context_id for item in items} | {"context-9"}:
        assert tested.shelf(context) == sorted(item.key for item in items if item.context_id == context)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.text("ab", max_size=2)), unique=True).map(sorted),
    st.integers(1, 5),
    st.none() | st.integers(0, 9),
    st.none() | st.tuples(st.integers(0, 9), st.text("ab", max_size=2)),
)
def test_a_page_is_a_slice_of_the_filtered_list(
    shelf: list[tuple[int, str]], size: int, since: int | None, after: tuple[int, str] | None
) -> None:
    matching = [key for key in reversed(shelf) if since is None or key[0] >= since]
    rest = [key for key in matching if after is None or key < after]

    assert find_page(shelf, size, since, after) == (rest[:size], len(matching), len(rest) > size)


@pytest.mark.req("LIST-02")
async def test_a_listing_of_100_000_tasks_in_memory_costs_about_what_100_cost() -> None:
    costs: list[float] = []
    for count in (100, 100_000):
        store = MemoryStore()
        for n in range(count):
            await store.append([SampleTask(f"{n:06}", at=START_MS + n).take()])
        query = TaskQuery(scope=Scope(), page_size=50, after=(START_MS + count // 2 + 50, ""))
        assert (await store.page(query)).total == count
        begun = time.perf_counter()
        for _ in range(100):
            await store.page(query)
        costs.append((time.perf_counter() - begun) / 100 * 1e6)
    print(f"a page of 50: {costs[0]:.0f} µs of 100 tasks, {costs[1]:.0f} µs of 100,000 tasks")
