"""``dragoman agentcore init``: what it writes, what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agentcore.init.recipe import lint, read_steps
from tests.cli.commands.program import Done, Dragoman

FILES = {"Dockerfile", ".dockerignore", "DEPLOY.md", "requirements-agentcore.txt", "wheels/README.txt"}


Init = Callable[..., Done]


@pytest.fixture
def init(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Init:
    """``dragoman agentcore init``, for the folder of the test or one below it."""
    program = Dragoman(tmp_path_factory.mktemp("home"))

    def run(*options: str, below: str = "") -> Done:
        return program.inside("agentcore", "init", str(tmp_path / below), *options)

    return run


def written(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.req("AC-S-07")
def test_it_writes_a_recipe_that_keeps_the_rules(init: Init, tmp_path: Path) -> None:
    done = init("--agent", "tides:agent", below="place")
    files = written(tmp_path / "place")
    steps = read_steps(files["Dockerfile"])

    assert (done.status, set(done.out.split())) == (0, {str(tmp_path / "place" / name) for name in FILES})
    assert set(files) == FILES
    assert list(lint(steps)) == []
    assert steps[-1].words == ["python", "-m", "dragoman", "run", "tides:agent", "--agentcore"]
    assert {".env", ".git", ".venv", "**/__pycache__"} <= set(files[".dockerignore"].splitlines())


@pytest.mark.req("AC-S-07")
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("-slim-bookworm", ""),
        ("--platform=linux/arm64 ", ""),
        ("python:3.", "registry.example/python:3."),
        ("USER 10001:10001", "USER root"),
        ("USER 10001:10001", "USER 0:0"),
        ('CMD ["python", "-m", "dragoman", "run", "tides:agent", "--agentcore"]', "CMD python -m dragoman run tides"),
        ('CMD ["python", "-m"', 'CMD ["sh", "-c", "python", "-m"'),
        ("--only-binary :all: ", ""),
        ("RUN python -m compileall -q .", "RUN apt-get install gcc"),
    ],
)
def test_the_rules_see_what_breaks_them(init: Init, tmp_path: Path, good: str, bad: str) -> None:
    init("--agent", "tides:agent")
    text = (tmp_path / "Dockerfile").read_text(encoding="utf-8")
    assert good in text

    assert list(lint(read_steps(text.replace(good, bad)))) != []


@pytest.mark.req("AC-S-07")
def test_every_package_is_pinned_and_no_index_is_named(init: Init, tmp_path: Path) -> None:
    init()
    files = written(tmp_path)
    pins = [line for line in files["requirements-agentcore.txt"].splitlines() if not line.startswith("#")]

    assert re.fullmatch(r"dragoman\[cli,sql\]==[\d.]+", pins[0])
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.]+", pin) for pin in pins[1:])
    assert {"msgspec", "httpx2", "uvicorn", "click", "sqlalchemy"} <= {pin.partition("==")[0] for pin in pins}
    assert not any(re.search(r"index-url|file:|/simple\b", text) for text in files.values())


def test_it_is_the_same_each_time(init: Init, tmp_path: Path) -> None:
    init(below="one")
    init(below="two")

    assert written(tmp_path / "one") == written(tmp_path / "two")


def test_the_requirements_of_the_agent_are_installed_as_well(init: Init, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pandas==3.0.0\n")
    init()
    text = (tmp_path / "Dockerfile").read_text(encoding="utf-8")

    assert "COPY requirements-agentcore.txt requirements.txt ./" in text
    assert "--requirement requirements-agentcore.txt --requirement requirements.txt" in text
    assert (tmp_path / "requirements.txt").read_text() == "pandas==3.0.0\n"


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_is_replaced_unless_it_is_asked_for(init: Init, tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")

    refused = init()
    untouched = written(tmp_path)
    forced = init("--force")

    assert refused.status == 1
    assert name in refused.err
    assert untouched == {name: "mine"}
    assert (forced.status, set(written(tmp_path))) == (0, FILES)
    assert (tmp_path / name).read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize("agent", ["", "tides agent", "tides:agent\nRUN rm", 'tides"]', "$(id)"])
def test_what_names_no_agent_is_refused(init: Init, tmp_path: Path, agent: str) -> None:
    done = init("--agent", agent)

    assert done.status == 2
    assert written(tmp_path) == {}


@pytest.mark.req("AC-S-07")
def test_the_notes_name_what_has_to_be_set_and_who_may_call(init: Init, tmp_path: Path) -> None:
    init("--agent", "tides:agent")
    notes = (tmp_path / "DEPLOY.md").read_text(encoding="utf-8")

    for word in (
        "serverProtocol",
        "requestHeaderAllowlist",
        "A2A-Version",
        "A2A-Extensions",
        "bedrock-agentcore:InvokeAgentRuntime`",
        "bedrock-agentcore:GetAgentCard",
        "bedrock-agentcore:StopRuntimeSession",
        "bedrock-agentcore:InvokeAgentRuntimeForUser",
        "idleRuntimeSessionTimeout",
        "--store",
    ):
        assert word in notes, word
    assert "$" not in notes
