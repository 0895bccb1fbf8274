"""A policy that is wrong stops the start, with file, line and what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.facts import PLACE, layer
from lorimer.core.decisions import Verdict
from lorimer.safety.policy import load_policy
from lorimer.safety.policy.examples import check_examples
from lorimer.safety.policy.faults import PolicyError
from lorimer.safety.policy.layers import LayeredPolicy
from lorimer.safety.policy.lines import find_line, key_lines
from lorimer.safety.policy.load import CONDITIONS, KEYS, parse_layer

RULE = '[[policy.rule]]\ntool = "x"\n'


@pytest.mark.parametrize(
    ("text", "line", "what", "next"),
    [
        ("[policy\n", 1, "not TOML", ""),
        (RULE + 'decision = "deny"\nreason = \n', 4, "not TOML", ""),
        (RULE + 'decision = "deny"\ntool = "y"\n', 4, "not TOML", ""),
        ("[polcy]\n", 1, "polcy", "[policy]"),
        ("[policy]\nmode = 1\n", 2, "'mode'", "modes"),
        ("[policy]\n\ndelegates = []\n", 3, "delegates", "delegate"),
        ('[policy]\ndelegate = ["users"]\n', 2, "'users'", "project"),
        ('[policy]\ndelegate = ["user"]\n', 2, "'user'", "project, session"),
        ('[policy]\nmodes = ["yolo"]\n', 2, "'yolo'", "plan, ask, auto, trusted"),
        ("[policy]\nmodes = []\n", 2, "modes is empty", ""),
        ("[policy]\nrule = 3\n", 2, "list of tables", "[[policy.rule]]"),
        ("policy = 3\n", 1, "no table", "[policy]"),
        (RULE, 1, "no decision", "allow, review, ask, deny"),
        ("\n\n" + RULE, 3, "no decision", ""),
        (RULE + 'decision = "alow"\n', 3, "'alow'", "Did you mean allow?"),
        (RULE + 'decision = "deny"\ntol = "y"\n', 4, "'tol'", "Did you mean tool?"),
        (RULE + 'decision = "deny"\n"command " = "y"\n', 4, "'command '", "command"),
        ('[[policy.rule]]\ndecision = "deny"\n', 1, "no condition", 'tool = "*"'),
        ('[[policy.rule]]\npaths = "a"\ndecision = "allow"\n', 1, "which tools", "Add tool"),
        (RULE + 'decision = "allow"\nconcerns = ["forbidden"]\n', 4, "forbidden", ""),
        (RULE + 'decision = "allow"\naccess = "read"\n', 4, "needs paths", "paths"),
        (RULE + 'decision = "deny"\nconcerns = ["danger"]\n', 4, "'danger'", "runs_code"),
        (RULE + 'decision = "deny"\neffects = "reads"\n', 4, "'reads'", "Did you mean read?"),
        (RULE + 'decision = "deny"\neffects = "read"\nconcerns = "network"\n', 4, "never match",
         ""),
        (RULE + 'decision = "deny"\ntainted = false\ntaint = "web"\n', 4, "never match", ""),
        (RULE + 'decision = "deny"\ntainted = "yes"\n', 4, "'yes'", "true or false"),
        (RULE + 'decision = "deny"\nreason = 3\n', 4, "reason is 3", ""),
        ('[[policy.rule]]\ntool = []\ndecision = "deny"\n', 2, "never match", ""),
        (RULE + 'decision = "deny"\nhosts = [""]\n', 4, "hosts", ""),
        (RULE + 'decision = "deny"\ncommand = "a \'b"\n', 4, "cannot be read", ""),
        (RULE + 'decision = "deny"\ncommand = " "\n', 4, "no words", ""),
        (RULE + 'decision = "deny"\npaths = "../x"\n', 4, "after resolving", "folder itself"),
        (RULE + 'decision = "deny"\narguments = {}\n', 4, "arguments", ""),
        (RULE + 'decision = "deny"\narguments = { n = { max = "3" } }\n', 4, "max is '3'", ""),
        (RULE + 'decision = "deny"\narguments = { n = { mx = 3 } }\n', 4, "'mx'",
         "Did you mean max?"),
        (RULE + 'decision = "deny"\narguments = { n = { min = 4, max = 3 } }\n', 4,
         "never match", ""),
        (RULE + 'decision = "deny"\narguments = { n = { regex = "(" } }\n', 4, "regular", ""),
        (RULE + 'decision = "deny"\narguments = { n = { one_of = [] } }\n', 4, "one_of", ""),
        (RULE + 'decision = "deny"\n[policy.rule.arguments]\nn = { own = 1 }\n', 5, "own is 1", ""),
        (RULE + 'decision = "deny"\nid = "a"\n' + RULE + 'decision = "deny"\nid = "a"\n', 5,
         "used on line 1", ""),
    ],
)  # fmt: skip
def test_a_fault_names_its_line(text: str, line: int, what: str, next: str) -> None:
    with pytest.raises(PolicyError) as caught:
        layer(text)
    assert caught.value.file == "user.toml" and caught.value.line == line, caught.value
    assert f"user.toml, line {line}: " in caught.value.message
    assert what in caught.value.message and next in caught.value.next
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('tool = "x"', 'tool = ["x"]'),
        ('tool = ["a", "b"]', 'tool = ["b", "a"]'),
        ('tool = "x"\narguments = { a = "1", b = "2" }',
         'arguments = { b = "2", a = "1" }\ntool = "x"'),
    ],
)  # fmt: skip
def test_rules_that_contradict_each_other_are_refused(one: str, other: str) -> None:
    text = (
        f'[[policy.rule]]\n{one}\ndecision = "allow"\n\n'
        f'[[policy.rule]]\n{other}\ndecision = "deny"\n'
    )
    with pytest.raises(PolicyError, match="same conditions says allow") as caught:
        layer(text)
    assert caught.value.line == text[: text.rindex("[[")].count("\n") + 1
    layer(text.replace("deny", "allow"))
    layer(text.replace(other, 'tool = "y"'))


def test_the_project_may_keep_other_things_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "lorimer.toml").write_text(
        "[other]\na = 1\n[policy]\n" + RULE + 'decision = "ask"\n'
    )
    assert len(load_policy("ask", tmp_path, home=tmp_path / "none").rules) == 1


def test_every_key_can_be_said(tmp_path: Path) -> None:
    text = """
[policy]
delegate = ["project", "session"]
modes = ["plan", "ask", "auto"]

[[policy.rule]]
id = "all"
tool = ["shell_*", "run_script"]
group = "shell"
server = "git*"
command = ["git push *"]
arguments = { n = { min = 1, max = 3.5 }, to = "*@x.org", kind = ["a", "b"], on = true }
other_arguments = false
paths = ["docs/**", "~/notes/*", "/srv/[ab]/x"]
access = ["write", "delete"]
hosts = ["*.example.org", "example.org:8443"]
secrets = "git*"
effects = ["write", "irreversible"]
concerns = ["network"]
roles = "dev*"
not_roles = ["admin"]
principals = "ada"
tainted = true
taint = "https://*"
decision = "review"
reason = "because"
next = "do that"
match = []
"""
    made = layer(text, "organisation")
    (rule,) = made.rules
    assert made.delegate == ("project", "session") and made.modes == ("plan", "ask", "auto")
    assert all(getattr(rule, key) is not None for key in CONDITIONS)
    assert set(KEYS) == {
        line.split(" =")[0] for line in text.splitlines() if " = " in line and line[0].isalpha()
    } - {"delegate", "modes"} | {"not_match"}


# --- examples ---


EXAMPLES = """
[[policy.rule]]
tool = "shell_exec"
arguments = { command = "git *" }
decision = "deny"
match = [
  'shell_exec {"command": "git push"}',
  "shell_exec {\\"command\\": \\"git pull\\"}",
]
not_match = ['shell_exec {"command": "ls"}', 'read_file {"path": "a"}']
"""


def test_examples_that_hold_pass() -> None:
    assert check_examples(layer(EXAMPLES), PLACE) == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("git pull", "svn up", 8, "does not match its match example"),
        ('"ls"', '"git log"', 10, "matches its not_match example"),
        ("git push\"}'", "git push}'", 7, "not JSON"),
        ("'read_file {", "'4 {", 10, "no call"),
    ],
)
def test_an_example_that_fails_stops_the_start(
    old: str, new: str, line: int, what: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(EXAMPLES.replace(old, new))
    with pytest.raises(PolicyError) as caught:
        load_policy("ask", tmp_path, home=tmp_path)
    assert caught.value.line == line and what in caught.value.message
    assert str(file) in caught.value.message


def test_examples_are_about_the_call_whoever_makes_it() -> None:
    text = EXAMPLES + 'roles = "admin"\ntainted = true\n'
    assert check_examples(layer(text), PLACE) == 4


# --- lines ---


def test_lines_of_keys() -> None:
    text = '''# [[policy.rule]]
[policy]
delegate = ["a]", # [x]
  "b"]
"modes" = """
[[policy.rule]]
tool = 1
"""

[[policy.rule]]
tool = 'x'
  command = [
  "a = b",
]
[policy.rule.arguments]
a.b = { c = 1 }
[[ policy . rule ]]
text = \'\'\'
x = 1\'\'\'
after = "\\\\"
last = 1'''
    lines = key_lines(text)
    expected = {
        ("policy",): 2, ("policy", "delegate"): 3, ("policy", "modes"): 5,
        ("policy", "rule", 0): 10, ("policy", "rule", 0, "tool"): 11,
        ("policy", "rule", 0, "command"): 12, ("policy", "rule", 0, "arguments"): 15,
        ("policy", "rule", 0, "arguments", "a"): 16,
        ("policy", "rule", 0, "arguments", "a", "b"): 16,
        ("policy", "rule", 1): 17, ("policy", "rule", 1, "text"): 18,
        ("policy", "rule", 1, "after"): 20, ("policy", "rule", 1, "last"): 21,
    }  # fmt: skip
    assert lines == expected
    assert find_line(lines, ("policy", "rule", 0, "arguments", "a", "b", "c")) == 16
    assert find_line(lines, ("nothing",)) == 1


def test_the_uppermost_layer_that_speaks_of_injection_decides() -> None:
    text = '[policy.injection]\ntrifecta = "deny"\n'
    strict = parse_layer(text, name="organisation", file="o.toml")
    loose = parse_layer('[policy.injection]\ntrifecta = "ask"\n', name="user", file="u.toml")
    assert LayeredPolicy("auto", (strict, loose), place=PLACE).injection.trifecta is Verdict.DENY
    assert LayeredPolicy("auto", (loose,), place=PLACE).injection.trifecta is Verdict.ASK
    assert LayeredPolicy("auto", (), place=PLACE).injection.links is True


@pytest.mark.parametrize(
    ("layer", "text", "said"),
    [
        ("project", "[policy.injection]\nlinks = false", "has no say in"),
        ("session", "[policy.injection]\nlinks = false", "has no say in"),
        ("user", "[policy.injection]\nlink = false", "there is no key 'link'"),
        ("user", "[policy.injection]\nlinks = 1", "links is 1"),
        ("user", "[policy]\ninjection = 3", "injection is no table"),
    ],
)
def test_bad_injection_settings_name_file_and_line(layer: str, text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=r"p\.toml, line \d") as fault:
        parse_layer(text, name=layer, file="p.toml")
    assert said in fault.value.message
