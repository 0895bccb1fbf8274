"""What enters the context when 50 pages are read and one fact is taken from each: by plain calls,
and by one script that makes the same calls (`run_script`).

    python bench/code_orchestration.py            a table and a JSON line
    python bench/code_orchestration.py --json     one JSON object

The pages are local files, made here, each some 8,000 characters. The model is scripted: it makes
the calls that a model would make in either way; the tools, the dispatcher and the record are real.
Characters are those of calls and results in the trajectory; tokens are characters / 4. `sent` is
the sum over all requests of a session, each of which sends all that came before (what a provider
without a cache charges).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from lorimer import Agent, Limits
from lorimer.core.messages import CallPart, Kind, ResultPart, TextPart
from lorimer.testing import ScriptedModel, call
from lorimer.toolkits import toolset

_WORDS = (
    "stone", "river", "engine", "market", "winter", "ladder", "copper", "garden", "window",
    "method", "paper", "silver", "engineer", "harbour", "number", "station", "valley",
)  # fmt: skip
_SCRIPT = """\
import re
rows = []
for n in range(1, {pages} + 1):
    text = read_file(path=f'pages/{{n:03}}.html')
    name = re.search(r'<h1>(.*?)</h1>', text)
    price = re.search(r'class="price">([0-9.]+) EUR', text)
    rows.append(f'{{name.group(1)}};{{price.group(1)}}')
'\\n'.join(rows)
"""


def make_pages(folder: Path, pages: int, seed: int = 7) -> dict[str, str]:
    """Write the pages; the names and prices in them."""
    random_words = random.Random(seed)
    (folder / "pages").mkdir()
    truth = {}
    for n in range(1, pages + 1):
        name = f"{random_words.choice(_WORDS).title()} {n:03}"
        price = f"{random_words.uniform(2, 900):.2f}"
        truth[name] = price
        paragraphs = [
            f'<p class="p{i}">{" ".join(random_words.choices(_WORDS, k=30))}.</p>'
            for i in range(34)
        ]
        paragraphs.insert(
            random_words.randrange(34), f'<p>Price: <span class="price">{price} EUR</span></p>'
        )
        page = f"<html><body>\n<h1>{name}</h1>\n" + "\n".join(paragraphs) + "\n</body></html>\n"
        (folder / "pages" / f"{n:03}.html").write_text(page, encoding="utf-8")
    return truth


async def measure(folder: Path, way: str, pages: int, truth: dict[str, str]) -> dict[str, Any]:
    if way == "plain calls":
        replies: list[Any] = [
            call("read_file", path=f"pages/{n:03}.html") for n in range(1, pages + 1)
        ]
    else:
        replies = [call("run_script", script=_SCRIPT.format(pages=pages))]
    model = ScriptedModel([*replies, "done"])
    tools = toolset(["read_file", "run_script"])
    async with (
        Agent(
            model,
            tools,
            store=folder / f"{way}.db",
            workspace=folder,
            limits=Limits(max_steps=None),
        ) as agent,
        agent.session() as session,
    ):
        result = await session.send("List name and price of every page.")
        assert result.ok and all(c.outcome == "done" for c in result.calls)
        grown = 0
        sent = 0
        for entry in session.entries:
            if entry.kind is Kind.ASSISTANT:
                sent += grown  # what this answer's request held
            grown += sum(map(_size, entry.parts))
        inner = len(agent.store.calls(session.id)) - len(result.calls)
        told = "".join(c.result for c in result.calls)
        found = sum(name in told and price in told for name, price in truth.items())
    return {
        "context_characters": grown,
        "context_tokens": grown // 4,
        "sent_characters": sent,
        "requests": result.steps,
        "calls": len(result.calls),
        "calls_inside": inner,
        "facts_found": found,
    }


def _size(part: Any) -> int:
    if isinstance(part, TextPart):
        return len(part.text)
    if isinstance(part, CallPart):
        return len(part.call.name) + len(part.call.raw)
    if isinstance(part, ResultPart):
        return sum(map(_size, part.content))
    return 0


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--pages", type=int, default=50)
    parser.add_argument("--json", action="store_true", help="one JSON object, nothing else")
    options = parser.parse_args()
    found = {}
    for way in ("plain calls", "run_script"):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            truth = make_pages(folder, options.pages)
            found[way] = await measure(folder, way, options.pages, truth)
    plain, script = found["plain calls"], found["run_script"]
    ratios = {
        "context": round(plain["context_characters"] / script["context_characters"], 1),
        "sent": round(plain["sent_characters"] / max(1, script["sent_characters"]), 1),
    }
    report = {"pages": options.pages, "ways": found, "ratio": ratios}
    if not options.json:
        print(f"{options.pages} pages, one fact of each\n")
        head = ("", "context chars", "tokens", "sent chars", "requests", "facts")
        print("{:<12} {:>13} {:>9} {:>12} {:>9} {:>6}".format(*head))
        for way, row in found.items():
            print(
                f"{way:<12} {row['context_characters']:>13,} {row['context_tokens']:>9,} "
                f"{row['sent_characters']:>12,} {row['requests']:>9} {row['facts_found']:>6}"
            )
        print(f"\ncontext: {ratios['context']} times smaller; sent: {ratios['sent']} times\n")
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
