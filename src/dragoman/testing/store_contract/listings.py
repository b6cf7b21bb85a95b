"""Whose tasks a store shows, and in which order."""

from __future__ import annotations

import msgspec

from dragoman.model import TaskState, TaskStatus
from dragoman.ports.store import Scope, TaskQuery, TaskStore
from dragoman.testing.sample_task import START_MS, SampleTask
from dragoman.testing.store_contract.asking import (
    ANYBODY,
    DONE,
    WAITING,
    WORKING,
    every_page,
    listed_ids,
    proves,
    put,
)


class ScopeContract:
    """A task of somebody else is a task that does not exist."""

    @proves("LIST-01", "LIST-04", "TEN-01", "ERR-09")
    async def test_another_tenant_or_owner_sees_nothing(self, store: TaskStore) -> None:
        """In a lookup and in a listing, with and without filters."""
        sample = SampleTask(scope=Scope("tenant", "owner"))
        await put(store, sample.take())

        for scope in (Scope("tenant", "other"), Scope("other", "owner"), Scope("owner", "tenant"), ANYBODY):
            assert await store.task(sample.id, scope) is None
            for query in (
                TaskQuery(scope=scope),
                TaskQuery(scope=scope, context_id="context-1"),
                TaskQuery(scope=scope, state=WORKING, since_ms=0),
            ):
                page = await store.page(query)
                assert (page.tasks, page.total, page.next) == ([], 0, None)

    @proves("TEN-01", "LIST-04")
    async def test_the_own_scope_sees_the_task(self, store: TaskStore) -> None:
        """Tenant and owner are opaque texts."""
        scope = Scope("a/b 'c\" --", "d%_ä\u2028")
        await put(store, SampleTask(scope=scope).take())

        assert await store.task("task-1", scope) is not None
        assert await listed_ids(store, TaskQuery(scope=scope)) == ["task-1"]

    @proves("TEN-03", "TEN-04", "AUTH-08")
    async def test_agents_that_share_a_store_do_not_see_each_others_tasks(self, store: TaskStore) -> None:
        """In a lookup, a listing and its total, and for the housekeeping."""
        ours, theirs = (Scope("t", "o", agent) for agent in ("ours", "theirs"))
        await put(store, SampleTask("a", scope=ours).take(), SampleTask("b", scope=theirs).take())
        for task_id, scope in (("old-a", ours), ("old-b", theirs)):
            await put(store, SampleTask(task_id, scope=scope).move(DONE, START_MS + 1).take())

        assert await store.task("b", ours) is None
        page = await store.page(TaskQuery(scope=ours, state=WORKING))
        assert ([task.id for task in page.tasks], page.total) == (["a"], 1)
        assert await store.orphans(START_MS, 10, "ours") == ["a"]
        assert await store.orphans(START_MS, 10) == []
        assert await store.purge(START_MS + 2, 10, "theirs") == 1
        assert await store.task("old-b", None) is None
        assert await store.task("old-a", ours) is not None

    @proves("AUTH-08", "AUTH-09", "LIST-04")
    async def test_a_wide_scope_reaches_other_owners_of_the_same_tenant_and_agent(self, store: TaskStore) -> None:
        """Those that it names, or everybody."""
        owned = {name: SampleTask(name, scope=Scope("t", name, "x")) for name in ("ann", "bob", "cy")}
        strangers = [SampleTask("far", scope=Scope("u", "ann", "x")), SampleTask("away", scope=Scope("t", "ann", "y"))]
        await put(store, *(sample.take() for sample in (*owned.values(), *strangers)))

        for scope, reached in (
            (Scope("t", "ann", "x", frozenset({"bob", "dee"})), {"ann", "bob"}),
            (Scope("t", "dee", "x", frozenset({"cy"})), {"cy"}),
            (Scope("t", "dee", "x", everybody=True), {"ann", "bob", "cy"}),
        ):
            assert {task_id for task_id in (*owned, "far", "away") if await store.task(task_id, scope)} == reached
            for query in (
                TaskQuery(scope=scope),
                TaskQuery(scope=scope, context_id="context-1"),
                TaskQuery(scope=scope, state=WORKING, since_ms=0),
            ):
                page = await store.page(query)
                assert ({task.id for task in page.tasks}, page.total) == (reached, len(reached))

    @proves("LIST-02", "LIST-03", "AUTH-08")
    async def test_the_pages_of_several_owners_are_one_listing_in_order(self, store: TaskStore) -> None:
        """Newest first, without gap or double."""
        for number in range(9):
            scope = Scope("t", ("ann", "bob", "cy")[number % 3], "x")
            await put(store, SampleTask(f"task-{number}", at=START_MS + number, scope=scope).take())
        ours = Scope("t", "ann", "x", frozenset({"bob"}))
        everybody = Scope("t", "", "x", everybody=True)

        for scope, wanted in ((ours, [7, 6, 4, 3, 1, 0]), (everybody, list(range(8, -1, -1)))):
            pages = await every_page(store, TaskQuery(scope=scope, page_size=2))
            assert [task.id for page in pages for task in page.tasks] == [f"task-{number}" for number in wanted]
            assert {page.total for page in pages} == {len(wanted)}
            assert len(pages) == (len(wanted) + 1) // 2


class ListingContract:
    """Pages by status timestamp."""

    @proves("LIST-03", "AMB-50")
    async def test_the_newest_status_comes_first_and_ties_go_by_id(self, store: TaskStore) -> None:
        """Both descending."""
        for task_id, at in (("a", 5), ("d", 7), ("c", 7), ("b", 9)):
            await put(store, SampleTask(task_id, at=START_MS + at).take())

        assert await listed_ids(store, TaskQuery(scope=ANYBODY)) == ["b", "d", "c", "a"]

    @proves("LIST-03", "AMB-50")
    async def test_a_status_moves_a_task_to_the_front_and_an_artifact_does_not(self, store: TaskStore) -> None:
        """The sort key is the time of the status."""
        first, second = SampleTask("a", at=START_MS), SampleTask("b", at=START_MS + 1)
        await put(store, first.take(), second.take())
        await put(store, first.chunk("x").take())
        assert await listed_ids(store, TaskQuery(scope=ANYBODY)) == ["b", "a"]

        await put(store, first.move(WORKING, START_MS + 2).take())
        assert await listed_ids(store, TaskQuery(scope=ANYBODY)) == ["a", "b"]

    @proves("B105")
    async def test_a_task_without_a_timestamp_is_listed_last(self, store: TaskStore) -> None:
        """Not an error; its sort key is 0."""
        for task_id in ("a", "b"):
            append = SampleTask(task_id, at=0).take()
            append.status = TaskStatus(state=TaskState.WORKING)
            await put(store, append)
        await put(store, SampleTask("c").take())

        assert await listed_ids(store, TaskQuery(scope=ANYBODY, page_size=1)) == ["c", "b", "a"]

    @proves("LIST-09", "LIST-13", "AMB-53")
    async def test_filters_narrow_together_and_the_total_counts_all_matches(self, store: TaskStore) -> None:
        """Context, state, and a time that is inclusive; on pages of one."""
        facts = [(n, f"context-{n % 2}", (WORKING, DONE, WAITING)[n % 3], START_MS + n // 2) for n in range(12)]
        for n, context_id, state, at in facts:
            await put(store, SampleTask(f"{n:02}", context_id=context_id, state=state, at=at).take())

        for context_id in ("", "context-0", "context-2"):
            for wanted in (None, DONE, TaskState.FAILED):
                for since_ms in (None, START_MS + 2, START_MS + 100):
                    expected = [
                        f"{n:02}"
                        for n, context, state, at in reversed(facts)
                        if (not context_id or context == context_id)
                        and (wanted is None or state is wanted)
                        and (since_ms is None or at >= since_ms)
                    ]
                    query = TaskQuery(
                        scope=ANYBODY, context_id=context_id, state=wanted, since_ms=since_ms, page_size=1
                    )
                    pages = await every_page(store, query)
                    assert [task.id for page in pages for task in page.tasks] == expected
                    assert {page.total for page in pages} == {len(expected)}

    @proves("LIST-02", "AMB-50")
    async def test_equal_timestamps_page_without_loss_or_double(self, store: TaskStore) -> None:
        """Twenty-five tasks of one millisecond, pages of every size."""
        ids = [f"task-{n:02}" for n in range(25)]
        await put(store, *(SampleTask(task_id).take() for task_id in ids))

        for page_size in (1, 2, 5, 24, 25, 26):
            pages = await every_page(store, TaskQuery(scope=ANYBODY, page_size=page_size))
            assert [task.id for page in pages for task in page.tasks] == ids[::-1]
            assert len(pages) == -(-len(ids) // page_size)

    @proves("LIST-02", "AMB-50")
    async def test_paging_while_tasks_move_shows_each_resting_task_once(self, store: TaskStore) -> None:
        """A task that moves may show up to twice or not at all, its neighbours do not suffer."""
        samples = [SampleTask(f"task-{n:02}", at=START_MS + n // 3) for n in range(30)]
        await put(store, *(sample.take() for sample in samples))
        moving, resting = samples[::3], [sample.id for n, sample in enumerate(samples) if n % 3]
        query = TaskQuery(scope=ANYBODY, page_size=4)
        seen: list[str] = []

        for step, sample in enumerate(moving):
            page = await store.page(query)
            seen += [task.id for task in page.tasks]
            if page.next is None:
                break
            query = msgspec.structs.replace(query, after=page.next)
            await put(store, sample.move(WAITING, START_MS + 100 + step).take())
        seen += await listed_ids(store, query) if page.next is not None else []

        assert sorted(task_id for task_id in seen if task_id in resting) == sorted(resting)

    @proves("LIST-15")
    async def test_nothing_matches_gives_an_empty_page(self, store: TaskStore) -> None:
        """Not an error."""
        page = await store.page(TaskQuery(scope=ANYBODY, context_id="nowhere"))
        assert (page.tasks, page.total, page.next) == ([], 0, None)

    @proves("LIST-05", "LIST-06", "AMB-52")
    async def test_artifacts_and_history_come_when_asked_for(self, store: TaskStore) -> None:
        """From the log and from snapshots alike; status, context and metadata always come."""
        plain, kept = SampleTask("a", metadata={"x": [1]}), SampleTask("b", at=START_MS + 1)
        await put(store, plain.chunk("a").take(), kept.chunk("b").take(snapshot=True))
        await put(store, plain.move(DONE, said="Done", metadata={"y": None}).take(), kept.chunk("c").take())

        for artifacts in (False, True):
            for history in (False, True):
                query = TaskQuery(scope=ANYBODY, with_artifacts=artifacts, with_history=history)
                for task, sample in zip((await store.page(query)).tasks, (kept, plain), strict=True):
                    expected = sample.task
                    expected.artifacts = expected.artifacts if artifacts else []
                    expected.history = expected.history if history else []
                    assert task == expected

    @proves("LIST-13")
    async def test_totals_follow_creation_moves_and_removal(self, store: TaskStore) -> None:
        """By state and in all."""

        async def totals() -> list[int]:
            states = (None, WORKING, WAITING, DONE)
            return [(await store.page(TaskQuery(scope=ANYBODY, state=state))).total for state in states]

        first, second = SampleTask("a"), SampleTask("b")
        await put(store, first.take(), second.take())
        assert await totals() == [2, 2, 0, 0]
        await put(store, first.move(WAITING).take(), second.chunk("x").take())
        assert await totals() == [2, 1, 1, 0]
        await put(store, first.move(WORKING).take(), first.move(DONE).take())
        assert await totals() == [2, 1, 0, 1]
        second.fence = 7
        await store.append([second.move(DONE).take()])
        assert await totals() == [2, 1, 0, 1]
        assert await store.purge(START_MS + 1, 10) == 1
        assert await totals() == [1, 1, 0, 0]
