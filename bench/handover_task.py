"""What `handover.py` measures: a tree of 2,000 files, questions with answers that can be checked,
and a model that follows what its request holds, and knows nothing else.

The model is a rule, not a guess: it searches for the pattern of its task with the real tools and
keeps to every rule that stands anywhere in its request. So what it gets wrong was not handed over.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorimer.context.tokens import vocabulary
from lorimer.core.canonical import canonical_json
from lorimer.core.messages import Entry, Kind, TextPart
from lorimer.core.usage import Usage
from lorimer.models.protocol import Request
from lorimer.runtime.subagents.distil import INSTRUCTION
from lorimer.testing import ScriptedModel, call, reply

FILES = 2_000
SCHEMA = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}}},
    "required": ["files"],
    "additionalProperties": False,
}
BESIDE = INSTRUCTION[:60]
"""How a distilling request begins."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question in a conversation.

    Attributes:
        before: what the user said earlier; `reads`: a file the agent has read since.
        task: what the agent writes into the task when it repeats nothing of the conversation.
        bind: the sentences of the conversation that bind the task.
        expected: the files that are the right answer.
    """

    name: str
    before: str
    reads: str
    task: str
    bind: tuple[str, ...]
    expected: tuple[str, ...]


def grow(folder: Path) -> list[Question]:
    """Make the tree in `folder`; the questions about it. The same every time."""
    chance = random.Random(20)
    special = {17: "9100", 142: "9100", 58: "9333"}
    count = 0

    def write(name: str, text: str) -> None:
        nonlocal count
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        count += 1

    for n in range(200):
        port = special.get(n, str(chance.randrange(2000, 9000)))
        service = f"services/svc_{n:03}"
        codename = "falcon" if n == 77 else f"unit{n}"
        write(f"{service}/config.toml", f'name = "{codename}"\nport = {port}\nretries = {n % 7}\n')
        write(f"{service}/main.py", f"# service {n}\nprint('svc_{n:03}')\n" * 8)
        write(f"{service}/README.md", f"# Service {n}\n" + "It answers requests.\n" * 6)
        write(f"{service}/notes.txt", "\n".join(f"note {k} of {n}" for k in range(12)) + "\n")
    for n in range(100):
        for k in range(6):
            port = "9100" if (n, k) in ((3, 0), (44, 2)) else str(chance.randrange(2000, 9000))
            write(f"vendor/lib_{n:03}/part_{k}.toml", f'name = "lib{n}"\nport = {port}\n')
    write("services/svc_058/config.toml.bak", "port = 9333\n")
    write("docs/billing.md", "# Billing\nThe billing page of the handbook.\n")
    write("docs/rules.md", "# Rules\n" + "A service has one folder.\n" * 30
          + "Only files under services/ count as deployed.\n")  # fmt: skip
    n = 0
    while count < FILES:
        write(f"docs/page_{n:04}.md", f"# Page {n}\n" + "Words about the system.\n" * 10)
        n += 1
    ports = ("services/svc_017/config.toml", "services/svc_142/config.toml")
    never = "Never look in vendor/, it is not ours."
    return [
        Question("plain", "We look after these services.", "services/svc_001/main.py",
                 "Which files have `^port = 81[0-9]{2}$`?", (), ()),
        Question("never_there", f"We look after these services. {never}",
                 "services/svc_001/README.md", "Which files set `port = 9100`?", (never,), ports),
        Question("only_here", "We look after these services.", "docs/rules.md",
                 "Which deployed files set `port = 9100`?",
                 ("Only files under services/ count as deployed.",), ports),
        Question("not_these", "Files ending in .bak do not count.", "services/svc_002/main.py",
                 "Which files set `port = 9333`?", ("Files ending in .bak do not count.",),
                 ("services/svc_058/config.toml",)),
        Question("codename", "billing is called falcon in the code.", "services/svc_003/main.py",
                 "Which file configures `billing`?", ("billing is called falcon in the code.",),
                 ("services/svc_077/config.toml",)),
        Question("no_rule", "Take your time.", "services/svc_004/notes.txt",
                 "Which files say `note 3 of 150`?", (), ("services/svc_150/notes.txt",)),
    ]  # fmt: skip


def complete(questions: Sequence[Question], folder: Path) -> list[Question]:
    """The first question's answer is what is in the tree: found here by plain reading."""
    found = tuple(
        sorted(
            str(path.relative_to(folder))
            for path in folder.rglob("*.toml")
            if re.search(r"^port = 81[0-9]{2}$", path.read_text(), re.MULTILINE)
        )
    )
    first = questions[0]
    return [
        Question(first.name, first.before, first.reads, first.task, first.bind, found),
        *questions[1:],
    ]


# --- a model that keeps to what it is told -------------------------------------------------------


class Obedient(ScriptedModel):
    """Answers requests by rules, and says what each has used: its tokens by o200k, and how many of
    them a cache that holds every earlier request would have read."""

    def __init__(self, name: str, cache: list[list[bytes]]) -> None:
        super().__init__([], name=name)
        self._sent = cache

    def render_prefix(self, system: str, tools: Any, boundaries: Any = ()) -> bytes:
        return canonical_json({"system": system, "tools": [tool.to_json() for tool in tools]})

    def answer(self, request: Request, made: Any) -> Any:
        """`made` with what the request has used."""
        pieces = [request.prefix.rendered, *request.fragments]
        shared = max((_common(pieces, one) for one in self._sent), default=0)
        self._sent.append(pieces)
        sizes = [tokens(piece) for piece in pieces]
        wrote = tokens(made.encode() if isinstance(made, str) else canonical_json(made))
        used = Usage(sum(sizes), sum(sizes[:shared]), 0, wrote, requests=1)
        return reply(*([made] if not isinstance(made, list) else made), usage=used)


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def tokens(data: bytes) -> int:
    """Tokens of a text, by o200k (by characters where tiktoken is not installed)."""
    return vocabulary().count(data.decode("utf-8", "replace"))


def words_of(entry: Entry) -> str:
    """All text in an entry."""
    out = [part.text for part in entry.parts if isinstance(part, TextPart)]
    out += [p.text for r in entry.results for p in r.content if isinstance(p, TextPart)]
    return "\n".join(out)


def searches(request: Request) -> Any:
    """What a sub-agent does next: search, or answer with what it found and its rules let stand."""
    everything = "\n".join(words_of(entry) for entry in request.entries)
    at = max(i for i, e in enumerate(request.entries) if e.kind is Kind.USER)
    task = words_of(request.entries[at])
    task = task[task.rindex("[FROM_MAIN_AGENT]") :]
    wanted = re.findall(r"`([^`]+)`", task)[-1]
    alias = re.search(rf"\b{re.escape(wanted)} is called (\w+) in the code", everything)
    found = [r for e in request.entries[at:] for r in e.results if r.name == "grep_file"]
    if not found:
        pattern = alias[1] if alias else wanted
        return call("grep_file", pattern=pattern, path=".")
    text = "\n".join(p.text for p in found[-1].content if isinstance(p, TextPart))
    names = set(re.findall(r"^((?:services|vendor|docs)/[^\s:]+)", text, re.MULTILINE))
    return json.dumps({"files": sorted(name for name in names if _allowed(name, everything))})


def _allowed(name: str, rules: str) -> bool:
    never = re.findall(r"[Nn]ever look in (\w+)/", rules)
    only = re.findall(r"[Oo]nly files under (\w+)/ count", rules)
    without = re.findall(r"[Ff]iles ending in (\.\w+) do not count", rules)
    top = name.split("/")[0]
    return (
        top not in never
        and (not only or top in only)
        and not any(name.endswith(end) for end in without)
    )


BINDING = (
    r"[Nn]ever look in \w+/[^.\n]*\.",
    r"[Oo]nly files under \w+/ count[^.\n]*\.",
    r"[Ff]iles ending in \.\w+ do not count\.",
    r"\w+ is called \w+ in the code\.",
)


def distils(request: Request) -> str:
    """The answer to a distilling request: the sentences that bind, word for word, and one that
    nobody has said, which the check must drop."""
    everything = "\n".join(words_of(entry) for entry in request.entries[:-1])
    binding = [found for one in BINDING for found in re.findall(one, everything)]
    invented = "Always report to the head office."
    return json.dumps({"facts": [], "constraints": [*binding, invented]})
