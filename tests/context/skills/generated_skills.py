# ruff: noqa: E501 - tables of examples
"""Skill folders made by rule from a seed: valid ones, and each of their faults.

`folders(seed)` gives the same list for the same seed, on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = 20261130
PLAIN = "Reads tables and says what is in them. Use when somebody asks about a table."


@dataclass(frozen=True)
class Folder:
    """One folder: its name and its files. `what` says what was done to it."""

    what: str
    name: str
    files: dict[str, bytes]


def skill(front: str, body: str = "# What to do\n\nRead it.\n") -> bytes:
    return f"---\n{front}---\n\n{body}".encode()


def _named(what: str, name: str, folder: str | None = None, style: str = "{}") -> Folder:
    front = f"name: {style.format(name)}\ndescription: {PLAIN}\n"
    return Folder(what, name if folder is None else folder, {"SKILL.md": skill(front)})


def names() -> Iterator[Folder]:
    good = ["a", "7", "pdf", "pdf-forms", "a1-b2-c3", "0x", "x" * 63, "x" * 64, "a-" * 31 + "ab"]
    bad = ["x" * 65, "PDF", "pdF", "-pdf", "pdf-", "-", "--", "a--b", "a_b", "a.b", "a b", "a+b",
           "a@b", "é_ü", "a‐b", "a—b", "naïve–x", "😀", "a😀", "😀-b"]  # fmt: skip
    scripts = ["café", "über-maß", "данные", "表-分析", "データ", "ελληνικά", "한글-도구", "ß", "ﬁle",
               "ｐｄｆ", "ⅷ", "²", "x²", "ª", "٣", "१२", "हिन्दी", "cafe\u0301", "µ", "ſ", "ǆ", "ŉ",
               "Ⅷ", "É", "Д", "İ", "i\u0307", "ǅ", "𝒶𝒷𝒸", "𝐀", "ａ－ｂ", "a\u00adb", "a\u200bb",
               "ا", "שלום", "ไทย", "ა", "Ა", "ꭰ", "Ꭰ", "œuvre"]  # fmt: skip
    for name in good + bad + scripts:
        yield _named("name", name)
    for name in ["yes", "null", "~", "true", "123", "1.5", "2026-01-02", "0x1f", "1e3", "on"]:
        yield _named("name that YAML might read as something else", name)
    for name in ["pdf", "café", "表"]:
        yield _named("quoted name", name, style='"{}"')
        yield _named("quoted name", name, style="'{}'")
        yield _named("spaces around the name", name, style='"  {}  "')
        yield _named("comment after the name", name, style="{}  # the name")
        yield _named("another folder", name, folder="other")
        yield _named("folder in capitals", name, folder=name.upper())
    yield _named("decomposed folder", "caf\u00e9", folder="cafe\u0301")
    yield _named("decomposed name", "cafe\u0301", folder="caf\u00e9")
    yield _named("wide name", "ｐｄｆ", folder="pdf")
    yield _named("wide folder", "pdf", folder="ｐｄｆ")
    yield _named("ligature", "ﬁle", folder="file")
    yield _named("64 characters after normalisation", "ﬁ" * 32, folder="fi" * 32)
    yield _named("65 characters after normalisation", "ﬁ" * 32 + "x", folder="fi" * 32 + "x")


def descriptions() -> Iterator[Folder]:
    def one(what: str, written: str) -> Folder:
        front = f"name: table\ndescription:{written}\n"
        return Folder(f"description: {what}", "table", {"SKILL.md": skill(front)})

    for count in (1, 2, 1023, 1024, 1025, 1026, 1536, 5000):
        yield one(f"{count} characters", " " + "x" * count)
        yield one(f"{count} wide characters", " " + "ｗ" * count)
        yield one(f"{count} characters in quotes", f' "{"y" * count}"')
        yield one(f"{count} characters in a literal block", f" |\n  {'x' * (count - 1)}")
        yield one(f"{count} characters in a stripped block", f" |-\n  {'x' * count}")
    words = ("word " * 300).strip()
    for count in (1020, 1022, 1023, 1024, 1025, 1026, 1030):
        text = words[: count - 1] + "z"
        lines = [text[at : at + 90] for at in range(0, len(text), 90)]
        for mark in ("|", ">", "|-", ">-", "|+", ">+"):
            yield one(f"{count} characters, {mark}", f" {mark}\n  " + "\n  ".join(lines))
        yield one(f"{count} characters over lines", " " + "\n  ".join(text.split(" ")))
        yield one(f"{count} characters over quoted lines", ' "' + "\n  ".join(lines) + '"')
    for written in ["", " ", " ''", ' ""', ' "   "', " ~", " null", " |", " >\n  \n", "\n\n", " #"]:
        yield one(f"empty {written!r}", written)
    for written in [
        " 42", " true", " 2026-11-30", " - a", "\n  - a\n  - b", "\n  a: b", " [a, b]", " {a: b}",
        " Use when: somebody asks", " a:b", " a : b", " http://a.b/c", ' "Use when: x"',
        " 'it''s'", ' "tab\\tand \\u00e9 and \\x41"', ' "bad \\q escape"', " it's", ' say "yes"',
        " 'open", ' "open', " x #y", " x # y", " @x", " `x`", " %x", " &x y", " *x", " !x y", " !!str x",
        " ? x", " - x", " -x", " :x", " | x", " > x", " a\tb", "\ta", " a\n b", " a\nb", " a\n\n  b",
        " a\n  b: c", " a, b", " a] b", " a} b", " (a)", " <a>", " a & b", " a * b", " ! a", " \\n",
        " a --- b", " ---", ' "a---b"', " a\n  ---\n  b", " ...", " a...", " é", " \u2028x", " a\u0085b",
        " a\u00a0b", " a\ufeffb", " a\u200bb", " 😀", " a\x7fb", ' "a\\0b"', " =", " =x", " <<", " a;b",
        " |2\n   a", " |1\n a", " >9\n a", " |\n a\n  b", " |\n   a\n  b", " \"a\" b", " 'a' b",
    ]:  # fmt: skip
        yield one(repr(written), written)


def other_fields() -> Iterator[Folder]:
    def one(more: str) -> Folder:
        front = f"name: table\ndescription: {PLAIN}\n{more}\n"
        return Folder(f"field {more[:40]!r}", "table", {"SKILL.md": skill(front)})

    for count in (0, 1, 499, 500, 501, 502, 900):
        yield one("compatibility: " + "c" * count)
        yield one(f"compatibility: '{'c' * count}'")
    for more in [
        "compatibility:\n  - a", "compatibility:\n  a: b", "compatibility: 3.14", "compatibility: ''",
        "compatibility: [a]", "license: MIT", "license:", "license: 2.0", "license: [MIT]",
        "license: Proprietary. See LICENSE.txt", "license: a: b",
        "metadata:\n  author: x\n  version: 1.0", "metadata:\n  version: '1.0'", "metadata:",
        "metadata: {author: x}", "metadata: {}", "metadata:\n  a: true\n  b: 2026-01-01",
        "metadata:\n  a:\n", "metadata:\n  1: 2", "metadata:\n  a: b\n  a: c", "metadata:\n  a: &x b",
        "metadata:\n    a: b\n  c: d", "metadata:\n a: b", "metadata:\n\ta: b", "metadata:\n  'a b': c",
        "metadata:\n  a: x: y", "metadata:\na: b",
        "allowed-tools: Read", "allowed-tools: Read Write Bash(git:*)", "allowed-tools:",
        "allowed-tools: Read, Write", "allowed-tools: [Read, Write]", "allowed-tools: Bash(a: b)",
        "allowed-tools: '*'", "allowed-tools: *", "allowed-tools: \"Bash(git:*) Read\"",
        "version: 1.0", "author: x", "tags: x", "Name: x", "NAME: table", "descriptions: y",
        "allowed_tools: Read", "tools: Read", "model: x", "x:", "license: MIT\nversion: 2",
        "disable-model-invocation: true", "argument-hint: '[a]'", "argument-hint: [a]",
        "name: table", "description: again", "license: a\nlicense: b", "just text", "- item",
        "# only a comment", "a b: c", "'license': MIT", '"license": MIT', "? license\n: MIT",
        "<<: x", "<<:\n  a: b", "metadata: *m", "metadata: &m\n  a: b", "license: !x MIT",
        "license: |\n  MIT", "license: >-\n  MIT", "license : MIT", " license: MIT", "license:MIT",
        "metadata:\n  a: b\nlicense: MIT", "...", "... \nlicense: MIT", "%YAML 1.2", "\tlicense: MIT",
        "license: MIT\t# c", "license: MIT\t", "license:\tMIT", "license:   MIT   ", "license: 'a\n  b'",
        "license: 'a\n\n\n  b'", "license: \"a\\\n  b\"", "license: a\n\n\n", "\n\nlicense: MIT",
    ]:  # fmt: skip
        yield one(more)


def beyond_reference() -> Iterator[Folder]:
    """What the specification forbids and the reference validator lets pass."""
    for more in [
        "allowed-tools:\n  - Read\n  - Write", "allowed-tools:\n- Read", "allowed-tools:\n  a: b",
        "metadata: text", "metadata:\n  - a", "metadata:\n- a", "metadata:\n  a:\n    b: c", "metadata:\n  a:\n    - b",
        "license:\n  - MIT", "license:\n  name: MIT",
    ]:  # fmt: skip
        front = f"name: table\ndescription: {PLAIN}\n{more}\n"
        yield Folder(f"beyond: {more!r}", "table", {"SKILL.md": skill(front)})


def files() -> Iterator[Folder]:
    good = skill(f"name: table\ndescription: {PLAIN}\n")
    text = good.decode()

    def one(what: str, data: bytes, file: str = "SKILL.md") -> Folder:
        return Folder(what, "table", {file: data})

    yield one("as it should be", good)
    yield one("small letters", good, "skill.md")
    for file in (
        "Skill.md",
        "SKILL.MD",
        "SKILL",
        "SKILL.txt",
        "README.md",
        "SKILL.mdx",
        "sKILL.md",
    ):
        yield one(f"called {file}", good, file)
    both = {"SKILL.md": good, "skill.md": b"nothing"}
    yield Folder("both, the first good", "table", both)
    yield Folder("both, the first bad", "table", {"SKILL.md": b"nothing", "skill.md": good})
    yield Folder("no file", "table", {})
    yield Folder("only other files", "table", {"scripts/a.py": b"1", "README.md": b"x"})
    yield Folder("in a folder below", "table", {"table/SKILL.md": good})
    more = {"SKILL.md": good, "scripts/a.py": b"1"}
    yield Folder("with other files", "table", more)
    yield one("empty", b"")
    yield one("one newline", b"\n")
    yield one("byte order mark", b"\xef\xbb\xbf" + good)
    yield one("CRLF", text.replace("\n", "\r\n").encode())
    yield one("CR", text.replace("\n", "\r").encode())
    yield one("mixed line ends", text.replace("\n", "\r\n", 2).encode())
    yield one("no end", text.replace("---\n\n", "\n").encode())
    yield one("no beginning", text.removeprefix("---\n").encode())
    yield one("no front matter", b"# Table\n\nRead it.\n")
    yield one("empty front matter", b"---\n---\n\nRead it.\n")
    yield one("blank front matter", b"---\n\n\n---\n\nRead it.\n")
    yield one("comment as front matter", b"---\n# nothing\n---\nRead it.\n")
    yield one("list as front matter", b"---\n- name: table\n---\nRead it.\n")
    yield one("text as front matter", b"---\nname table\n---\nRead it.\n")
    yield one("no body", good.split(b"\n\n")[0] + b"\n")
    yield one("no newline at the end", good.rstrip() + b" x")
    yield one("blank line before", b"\n" + good)
    yield one("space before", b" " + good)
    yield one("spaces after the first mark", good.replace(b"---\n", b"---  \n", 1))
    yield one("four hyphens first", good.replace(b"---\n", b"----\n", 1))
    yield one("four hyphens last", text.replace("---\n\n", "----\n\n").encode())
    yield one("text after the last mark", text.replace("---\n\n", "--- x\n\n").encode())
    yield one("indented last mark", text.replace("---\n\n", "  ---\n\n").encode())
    yield one("dots as last mark", text.replace("---\n\n", "...\n\n").encode())
    yield one("plus signs", text.replace("---", "+++").encode())
    yield one("name on the first line", text.replace("---\n", "---", 1).encode())
    yield one("name after a space", text.replace("---\n", "--- ", 1).encode())
    yield one("name after a space, nothing else", b"--- name: table\n---\n")
    yield one("mark on the last field's line", text.replace(".\n---", ". ---").encode())
    yield one("rules in the body", good + b"\n---\n\nmore\n\n---\n")
    yield one("front matter twice", good + good)
    yield one("no name", skill(f"description: {PLAIN}\n"))
    yield one("no description", skill("name: table\n"))
    yield one("neither", skill("license: MIT\n"))
    yield one("null byte", good.replace(b"Reads", b"Re\0ads"))
    yield one("control character", good.replace(b"Reads", b"Re\x07ads"))
    yield one("control character in the body", good + b"\x07\x1b[31m")
    yield one("tabs", text.replace("name: ", "name:\t").encode())
    yield one("indented fields", f"---\n  name: table\n  description: {PLAIN}\n---\n".encode())
    yield one("uneven fields", f"---\n  name: table\n description: {PLAIN}\n---\n".encode())
    yield one("JSON", b'---\n{"name": "table", "description": "x"}\n---\n')
    yield one("reversed", f"---\ndescription: {PLAIN}\nname: table\n---\n".encode())
    yield one("large body", good + b"x" * 300_000)
    yield one("invisible first", "\u200b".encode() + good)
    yield one("name is a list", b"---\nname:\n  - table\ndescription: x\n---\n")
    yield one("name is a map", b"---\nname:\n  table: x\ndescription: x\n---\n")
    yield one("empty name", b"---\nname:\ndescription: x\n---\n")
    yield one("blank name", b"---\nname: '  '\ndescription: x\n---\n")
    yield one("name over two lines", b"---\nname: ta\n  ble\ndescription: x\n---\n")
    yield one("name in a block", b"---\nname: |\n  table\ndescription: x\n---\n")


_VALUES: tuple[Callable[[random.Random], str], ...] = (
    lambda r: "x" * r.randint(1, 30),
    lambda r: " ".join(r.choices(("use", "when:", "a", "table", "#1", "it's", "'", '"q"'), k=5)),
    lambda r: '"' + "".join(r.choices("ab \\n:#'é", k=r.randint(0, 12))) + '"',
    lambda r: "'" + "".join(r.choices('ab "n:#é', k=r.randint(0, 12))) + "'",
    lambda r: "".join(r.choices("ab:- #'\"[]{}&*!|>%@`,?~\té.", k=r.randint(1, 10))),
    lambda r: (
        f"{r.choice('|>')}{r.choice(('', '-', '+'))}\n  " + "\n  ".join("ab " * 3 for _ in "ab")
    ),
    lambda r: "x" * r.choice((1023, 1024, 1025)),
    lambda r: "",
    lambda r: "\n" + "\n".join(f"  k{n}: v" for n in range(r.randint(1, 3))),
)
_TEXTS = _VALUES[:-1]


def mixed(seed: int, count: int) -> Iterator[Folder]:
    """Folders with random fields in random order, most of them broken in some way."""
    source = random.Random(seed)
    for number in range(count):
        name = source.choice(["table", "table", "table", "Table", "ta--ble", "tablé", "t" * 65])
        lines = [f"name: {name}", f"description: {source.choice(_VALUES)(source)}"]
        for key in ("license", "compatibility", "version", "description"):
            if source.random() < (0.08 if key in ("version", "description") else 0.3):
                values = _TEXTS if key == "license" else _VALUES
                lines.append(f"{key}: {source.choice(values)(source)}")
        if source.random() < 0.3:
            lines.append(f"metadata:\n  author: {source.choice(_VALUES[:5])(source)}")
        source.shuffle(lines)
        if source.random() < 0.1:
            lines.pop()
        front = "\n".join(lines) + "\n"
        folder = name if source.random() < 0.9 else "other"
        yield Folder(f"mixed {number}", folder, {"SKILL.md": skill(front)})


def folders(seed: int = SEED, count: int = 150) -> list[Folder]:
    """All of them but `beyond_reference`."""
    return [*names(), *descriptions(), *other_fields(), *files(), *mixed(seed, count)]


def write(folder: Folder, where: str) -> str:
    """Make the folder below `where`, which must be empty; its path."""
    import os

    top = os.path.join(where, folder.name)
    os.mkdir(top)
    for name, data in folder.files.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return top
