"""dragoman's client with servers of frameworks: fasta2a of two lines, strands-agents."""

from __future__ import annotations

import pytest

from dragoman.client import V03Settings
from tests.peers.calling import our_caller
from tests.peers.cells import parameters, run
from tests.peers.deviation import FASTA2A_03_SERVER, FASTA2A_SERVER, STRANDS_SERVER
from tests.peers.scenario import Scenario, made_in, task_of, words
from tests.peers.scenarios_frameworks import FRAMEWORKS

SERVERS = {
    FASTA2A_SERVER: "fasta2a_server",
    FASTA2A_03_SERVER: "fasta2a_v03_server",
    STRANDS_SERVER: "strands_server",
}
CELLS = [cell for who, known in FRAMEWORKS.items() for cell in parameters(who, scenarios=known, bindings=("JSONRPC",))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("scenario", "who", "binding"), CELLS)
async def test_our_client_understands_the_server(
    scenario: Scenario, who: str, binding: str, request: pytest.FixtureRequest
) -> None:
    async with our_caller(request.getfixturevalue(SERVERS[who]), binding) as caller:
        await run(scenario, who, binding, caller, request.node, ours=True)


@pytest.mark.timeout(600)
@pytest.mark.req("V03-P05")
async def test_a_server_that_never_waits_is_asked_until_its_task_is_settled(
    fasta2a_v03_server: str,
) -> None:
    async with our_caller(fasta2a_v03_server, "JSONRPC", v03=V03Settings(poll_unsettled=True)) as caller:
        task = await task_of(caller, "do it")

    assert (words(task), made_in(task)) == ("COMPLETED", "it")
