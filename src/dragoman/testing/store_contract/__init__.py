"""The contract of :class:`~dragoman.ports.store.TaskStore` as tests that any store can be run through.

With pytest and pytest-asyncio (in auto mode), give an opened, empty store as a fixture::

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self):
            store = MyStore(...)
            await store.open()
            yield store
            await store.close()

One that keeps webhooks, as :class:`~dragoman.ports.push.WebhookStore` says, is run through :class:`WebhookContract`
too.

The tests need no pytest themselves: each is a coroutine function that takes a store and raises AssertionError. Those
that prove rows of the requirement register name them in an attribute ``requirements``.
"""

from dragoman.testing.sample_task import SampleTask
from dragoman.testing.store_contract.leases import HousekeepingContract, LeaseContract, MemoContract
from dragoman.testing.store_contract.listings import ListingContract, ScopeContract
from dragoman.testing.store_contract.logs import LogContract
from dragoman.testing.store_contract.refusals import RefusalContract
from dragoman.testing.store_contract.webhooks import WebhookContract

__all__ = ["SampleTask", "StoreContract", "WebhookContract"]


class StoreContract(
    LogContract,
    RefusalContract,
    ScopeContract,
    ListingContract,
    LeaseContract,
    MemoContract,
    HousekeepingContract,
):
    """All of it."""
