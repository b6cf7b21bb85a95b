"""The contract of a binding as tests that any binding can be run through, whoever made it.

With pytest and pytest-asyncio (in auto mode), give the way to reach an agent as a fixture::

    class TestMyBinding(BindingContract):
        @pytest.fixture
        async def reach(self):
            async with reaching(MyBinding()) as reach:
                yield reach

``reaching`` serves agents on a real socket and calls them over the binding; it takes a
:class:`~dragoman.ports.binding.Binding`, or the name of a standard one (``"JSONRPC"``, ``"HTTP+JSON"``, ``"GRPC"``), or
``"in process"``. Every test starts agents of its own. What a binding cannot do by its design is said as data, in the
class variables ``coarser`` and ``biggest_number``, and so can be read in one place.

The tests need no pytest themselves: each is a coroutine function that takes ``reach`` and raises AssertionError. Those
that prove rows of the requirement register name them in an attribute ``requirements``.

Spec: §5.1, §12, BIND-01, BIND-03 to BIND-10, BIND-12.
"""

from dragoman.testing.binding_contract.data import DataContract
from dragoman.testing.binding_contract.failures import FailureContract
from dragoman.testing.binding_contract.operations import OperationContract
from dragoman.testing.binding_contract.parameters import ParameterContract
from dragoman.testing.binding_contract.reaching import Reach, Reached, reaching
from dragoman.testing.binding_contract.streams import StreamContract

__all__ = ["BindingContract", "Reach", "Reached", "reaching"]


class BindingContract(OperationContract, DataContract, StreamContract, FailureContract, ParameterContract):
    """All of it."""
