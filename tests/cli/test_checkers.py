"""`--sidecar` and `--reviewer` on the command line."""

from __future__ import annotations

from typing import Any

from cli.conftest import Cli, call
from wire.answers import Say

ALLOW = Say('{"verdict": "allow", "reason": "the user asked for it"}')
DENY = Say('{"verdict": "deny", "reason": "the user wants no such thing"}')
RM = Say(calls=(call("shell_exec", command="rm -rf build"),))


def made(cli: Cli) -> Any:
    build = cli.folder / "build"
    build.mkdir()
    (build / "x").write_text("x")
    return build


def test_a_sidecar_lets_a_call_pass_that_would_have_been_asked(cli: Cli, serve: Any) -> None:
    build = made(cli)
    agent, judge = serve(RM, "gone"), serve(ALLOW)
    words = ("run", "--json", "--mode", "auto", "--tools", "shell", "Remove the folder build")
    out = cli.json(*words, "--model", agent.model, "--sidecar", judge.model)
    assert [c["outcome"] for c in out["calls"]] == ["done"], out
    assert not build.exists()
    asked = str(judge.server.received[0].body)
    assert "rm -rf build" in asked
    assert "Remove the folder build" in asked


def test_what_a_sidecar_denies_does_not_run(cli: Cli, serve: Any) -> None:
    build = made(cli)
    agent, judge = serve(RM, "it was refused"), serve(DENY)
    words = ("run", "--json", "--mode", "auto", "--tools", "shell", "Tidy up")
    out = cli.json(*words, "--model", agent.model, "--sidecar", judge.model)
    assert [c["outcome"] for c in out["calls"]] == ["not_started"], out
    assert build.exists()


def test_a_reviewer_of_the_same_family_is_refused_at_the_start(cli: Cli) -> None:
    words = ("run", "--model", "openai:gpt-5", "--reviewer", "openai:gpt-5-mini", "Hello")
    ended = cli.run(*words, OPENAI_API_KEY="sk-x")
    assert ended.returncode == 2, ended
    assert b"family" in ended.stderr
