"""A pattern that can never match stops the start: a rule that denies would fail open."""

from __future__ import annotations

import json

import pytest

from harness.facts import PLACE, SHELL, facts, layer
from lorimer.core.calls import Effects
from lorimer.core.effects import CallEffects
from lorimer.core.errors import ConfigError
from lorimer.safety.network.urls import hosts_of
from lorimer.safety.policy.faults import PolicyError
from lorimer.safety.policy.layers import LayeredPolicy
from lorimer.safety.policy.modes import MODES
from lorimer.safety.policy.patterns import HostTexts


def rule(condition: str) -> str:
    return f'[[policy.rule]]\ndecision = "deny"\n\n{condition}\n'


NEVER = [
    ('hosts = ["http://x.org/"]', "'x.org'"),
    ("hosts = 'https://x.org:8443/path?q'", "'x.org:8443'"),
    ("hosts = 'ada@x.org'", "'x.org'"),
    ("hosts = '//x.org'", "'x.org'"),
    ("hosts = 'x.org/'", "'x.org'"),
    ("hosts = 'https://*.x.org/'", "'*.x.org'"),
    ("hosts = 'x.org:http'", "'x.org'"),
    ("hosts = '*.x.org:http'", "example.org"),
    ("hosts = 'x.org.'", "'x.org'"),
    ("hosts = '127.1'", "'127.0.0.1'"),
    ("hosts = 'münchen.example'", "'xn--mnchen-3ya.example'"),
    ("hosts = '*.münchen.example'", "example.org"),
    ("hosts = 'x org'", "example.org"),
    ("hosts = 'x.org, y.org'", "example.org"),
    ("hosts = '*.x.org y'", "example.org"),
    ("hosts = '[z-a].org'", "'[a-z]'"),
    ("hosts = ' '", "meant"),
    ("command = 'git diff | tee out'", '"git diff", "tee out"'),
    ("command = 'make && make test'", '"make", "make test"'),
    ("command = 'sleep 9 &'", '"sleep 9"'),
    ("command = 'ls; rm x'", '"ls", "rm x"'),
    ("command = 'cat x > y'", "paths"),
    ("command = 'sort < y'", "paths"),
    ("command = 'echo $(id)'", "inside"),
    ("command = 'echo `id`'", "inside"),
    ("command = '(ls)'", "inside"),
    ("command = 'rm $HOME/x'", "varies"),
    ("command = 'rm \"${X}\"'", "varies"),
    ("command = 'git {diff,log} *'", "each"),
    ("command = 'seq {1..3}'", "each"),
    ("command = 'CI=1 make'", "program"),
    ("command = 'ls [z-a]'", "'[a-z]'"),
    ("paths = '../x'", "folder itself"),
    ("paths = 'a/../b'", "folder itself"),
    ("paths = '$HOME/x/**'", "'~/…'"),
    ("paths = '${WORK}/x'", "'~/…'"),
    ("paths = '~ada/x'", "/home/ada"),
    ("paths = 'file:///etc/passwd'", "path alone"),
    ("paths = 'docs/[z-a]'", "'[a-z]'"),
    ("paths = ['ok', '  ']", "meant"),
    ("tool = 'git push'", "tool alone"),
    ("tool = 'shell_exec {}'", "tool alone"),
    ("tool = 'shell-exec'", "tool alone"),
    ("tool = '[z-a]*'", "'[a-z]'"),
    ("secrets = 'secret:github'", "'github'"),
    ("secrets = '${secret:github}'", "'github'"),
    ("secrets = 'GITHUB'", "'github'"),
    ("taint = '[!]'", "'[a-z]'"),
    ("arguments = { to = '[z-a]' }", "'[a-z]'"),
    ("arguments = { hosts = { glob = ['a', '[z-a]'] } }", "'[a-z]'"),
]


@pytest.mark.parametrize(("condition", "right"), NEVER, ids=[c for c, _ in NEVER])
def test_what_can_never_match_is_refused_with_its_line_and_the_right_form(
    condition: str, right: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        layer(rule(condition))
    assert caught.value.line == 4, caught.value
    assert _plain(right) in _plain(caught.value.next)


def _plain(text: str) -> str:
    return text.replace("'", "").replace('"', "")


MAY = {
    "hosts": ["x.org", "*.x.org", "X.org", "x.org:*", "[ab].x.org", "*", "10.0.0.?", "h[!a]t",
              "127.0.0.1:80", "[::1]", "::1", "[::1]:443", "localhost", "xn--mnchen-3ya.de"],
    "command": ['grep "a|b" *', "awk '{print $1}' *", "find . -exec rm {} \\;", "[ -f * ]",
                "git diff HEAD~1 -- src", "rm [*]", 'sed -n "1,2p" *', "*", "dd if=* of=*"],
    "paths": ["**", ".", "docs/", "A$B.class", "~", "~/x", "a b/*.md", "/srv/[ab]/x", "[[]x]"],
    "tool": ["*", "shell_*", "[a-z]*_exec", "x?"],
    "secrets": ["git*", "a-b", "[a-z]*"],
    "taint": ["https://x.org/*"],
    "roles": ["a b", "*"],
}  # fmt: skip


@pytest.mark.parametrize("key", MAY)
def test_what_can_match_is_taken(key: str) -> None:
    for one in MAY[key]:
        assert layer(rule(f"{key} = {json.dumps(one)}")).rules, one


def test_arguments_may_hold_any_text() -> None:
    assert layer(rule("arguments = { hosts = 'https://x.org/*', command = '$HOME | x' }")).rules


@pytest.mark.parametrize("url", ["https://[::1]/x", "https://[::1]:8443/x", "https://[0:0::1]/"])
def test_ipv6_in_a_rule_meets_what_is_connected_to(url: str) -> None:
    host = hosts_of(url)
    assert host is not None
    for pattern in ("[::1]", "::1", "[0:0:0::1]"):
        made = HostTexts.of((pattern,))
        assert made.match(host) and not made.match("[::2]") and not made.match("x")
        assert made.source == (pattern,)
    assert HostTexts.of(("[::1]:8443",)).match(host) is ("8443" in url)


@pytest.mark.parametrize(
    ("pattern", "host", "denied"),
    [("x.org:443", "x.org", True), ("x.org:80", "x.org", True), ("x.org:8443", "x.org", False),
     ("x.org:443", "x.org:443", True), ("x.org:443", "x.org:80", False),
     ("x.org", "x.org:9", True)],
)  # fmt: skip
def test_a_port_that_is_not_said_may_be_the_one_that_is_denied(
    pattern: str, host: str, denied: bool
) -> None:
    made = LayeredPolicy("trusted", [layer(rule(f'hosts = "{pattern}"'))], place=PLACE)
    call = facts("fetch_url", effects="read", touches=CallEffects(Effects.READ, hosts=(host,)))
    assert (made.decide(call).verdict == "deny") is denied


# --- modes ---


@pytest.mark.parametrize("name", ["user", "project", "session"])
@pytest.mark.parametrize(
    "modes", [m for n in range(1, 16) if (m := [x for i, x in enumerate(MODES) if n >> i & 1])]
)
def test_below_the_organisation_only_laxer_modes_can_be_taken_away(
    name: str, modes: list[str]
) -> None:
    text = "\n[policy]\nmodes = " + str(modes).replace("'", '"')
    layer(text, "organisation")
    if modes == list(MODES[: len(modes)]):
        assert layer(text, name).modes == tuple(modes)
        return
    with pytest.raises(PolicyError, match="only make things stricter") as caught:
        layer(text, name)
    assert caught.value.line == 3 and '"plan"' in caught.value.next


def test_a_stranger_s_folder_cannot_make_anybody_choose_auto() -> None:
    with pytest.raises(PolicyError) as caught:
        layer('[policy]\nmodes = ["auto"]\n', "project")
    assert "Use one of" not in caught.value.next
    assert '["plan", "ask", "auto"]' in caught.value.next


def test_the_advice_names_modes_that_every_layer_leaves() -> None:
    org = layer('[policy]\nmodes = ["ask", "auto"]\n', "organisation")
    project = layer('[policy]\nmodes = ["plan", "ask"]\n', "project")
    with pytest.raises(ConfigError) as caught:
        LayeredPolicy("auto", [org, project], place=PLACE)
    assert caught.value.next == "Use one of: ask."
    none = layer('[policy]\nmodes = ["trusted"]\n', "organisation")
    with pytest.raises(ConfigError) as caught:
        LayeredPolicy("ask", [none, project], place=PLACE)
    assert "No mode is left by" in caught.value.next and "project.toml, line 2" in caught.value.next


def test_the_right_form_of_a_command_denies_what_was_meant() -> None:
    made = LayeredPolicy(
        "trusted", [layer(rule('command = ["git diff", "tee out"]'))], place=PLACE
    )  # fmt: skip
    call = facts("shell_exec", {"command": "git diff | tee out"}, traits=SHELL)
    assert made.decide(call).verdict == "deny"
