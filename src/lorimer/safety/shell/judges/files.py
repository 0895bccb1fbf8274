"""Programs that delete, move, change rights, end processes or write devices."""

from __future__ import annotations

import re

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import options
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, by_table, judge_options, operands
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word, literal

DONE = Output("")


def _remove(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    tree = parsed.has("-r", "-R", "--recursive")
    for word in parsed.operands:
        analysis.delete(word, call.source, tree=tree)
    for word in parsed.unclear:
        tree = True
        analysis.delete(word, call.source, tree=tree)
    if not parsed.operands and not parsed.unclear:
        analysis.ask(Concern.DESTRUCTIVE, f"`{name}` deletes files", call.source)
    return DONE


def _rights(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """chmod, chown, chgrp: a write; of a whole tree it is held to the rules of deletion."""
    parsed = options.parse(program, _without_mode(call))
    known = [u for u in parsed.unknown if not re.fullmatch(r"-[rwxXst]", u)]
    parsed.unknown = known
    judge_options(analysis, call, name, program, parsed)
    tree = parsed.has("-R", "--recursive")
    words = parsed.operands
    if not parsed.has("--reference"):
        mode, words = words[:1], words[1:]
        text = mode[0].text if mode else None
        if name == "chmod" and (text is None or re.search(r"[ugo]?\+?s|^[4267]\d{3}$", text)):
            analysis.ask(Concern.PRIVILEGE, "a set-user or unknown mode", call.source)
    for word in words:
        if tree:
            analysis.delete(word, call.source, tree=True, verb="changes the rights of")
        else:
            analysis.write(word, call.source)
    if name != "chmod":
        analysis.ask(Concern.PRIVILEGE, f"`{name}` changes owners", call.source)
    return DONE


def _without_mode(call: Invocation) -> list[Word]:
    """`chmod -x f`: the mode looks like an option."""
    out = []
    for word in call.arguments:
        minus = word.text is not None and re.fullmatch(r"-[rwxXst]+", word.text)
        out.append(literal("a" + (word.text or "")) if minus else word)
    return out


def _dd(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    texts = [w.text for w in call.arguments]
    bounded = any(t and t.startswith("count=") for t in texts)
    for word, text in zip(call.arguments, texts, strict=True):
        key, _, value = (text if text is not None else word.head).partition("=")
        if text is None:
            analysis.unknown(f"{word.source} is not known before it runs", call.source)
        elif key == "of":
            analysis.write(value, call.source)
            analysis.raise_to(Effects.WRITE)
        elif key == "if":
            if not (bounded and value in ("/dev/zero", "/dev/urandom", "/dev/random")):
                analysis.read(value, call.source)
        elif key not in ("bs", "count", "skip", "seek", "ibs", "obs", "conv", "status", "iflag",
                         "oflag", "cbs", "iseek", "oseek"):  # fmt: skip
            analysis.unknown(f"`dd {text}` is not in the table", call.source)
    return Output(None, origins=call.given.origins)


def _kill(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = list(call.arguments)
    texts = [w.text for w in words]
    if texts[:1] in (["-l"], ["-L"], ["--list"]):
        return Output()
    signal = None
    if texts and texts[0] in ("-s", "-n", "--signal"):
        signal = texts[1] if len(texts) > 1 else None
        words = words[2:]
    elif len(texts) > 1 and texts[0] is not None and re.match(r"-(?!-$)", texts[0]):
        signal = texts[0].lstrip("-")
        words = words[1:]
    if texts == ["-0"]:
        signal, words = "0", []
    plain = all(
        w.kind is Kind.NUMBER if w.text is None else re.fullmatch(r"-?\d+|%\S+", w.text)
        for w in words
    )
    if signal == "0" and plain:
        return DONE  # it only asks whether the process is there
    for word in words:
        text = word.text
        if text in ("-1", "0", "1", "-0"):
            analysis.forbid("it ends every process of the user or the system", call.source)
        elif text is None:
            analysis.unknown(f"which process it ends is not known: {word.source}", call.source)
    if signal not in ("CONT", "WINCH") or not plain:
        analysis.ask(Concern.DESTRUCTIVE, f"`{name}` ends processes", call.source)
    return DONE


def _kill_by_name(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    analysis.ask(Concern.DESTRUCTIVE, f"`{name}` ends processes by name", call.source)
    texts = [w.text for w in call.arguments]
    every = any(
        t is not None and re.fullmatch(r"\.[*+]?|-u.*|--uid.*|--user.*|-v|-i?v", t) for t in texts
    )
    if every or None in texts:
        analysis.forbid("it may end every process of a user", call.source)
    return DONE


def _date(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    if name == "hostname" or any(not (w.text or "x").startswith("+") for w in parsed.operands):
        for word in parsed.operands:
            if name == "date" and (word.text or "").startswith("+"):
                continue
            analysis.ask(Concern.PRIVILEGE, f"`{name} {word}` sets it", call.source)
    return Output()


def _sleep(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    for word in call.arguments:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", word.text or "")
        seconds = (
            float(match[1]) * {"m": 60, "h": 3600, "d": 86400}.get(match[2], 1) if match else None
        )
        if seconds is None or seconds > 600:
            analysis.unknown(f"`sleep {word}` is long or not known", call.source)
    return DONE


def _endless(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """Programs that go on until they are ended: they need a count, or a reader that ends them."""
    parsed = options.parse(program, call.arguments)
    known = [w.known for w in parsed.operands]
    if name == "seq":
        ends = bool(known) and all(re.fullmatch(r"[-+]?\d{1,7}(\.\d{1,4})?", n) for n in known)
        ends = ends and not (len(known) == 3 and float(known[1]) == 0)
    elif name == "yes":
        ends = False
    elif name in ("vmstat", "iostat", "mpstat"):
        ends = len([n for n in known if n.isdigit()]) != 1
    else:
        rounds = parsed.value("-n", "-l")
        text = (rounds.text or "") if rounds is not None else ""
        ends = bool(re.fullmatch(r"[1-9]\d?", text)) and name in ("top", "iotop")
    if not ends and analysis.cut != call.source:
        analysis.unknown(f"`{name}` may never end", call.source)
    return by_table(analysis, call, name, program)


_LINK_OPTIONS = frozenset(
    {
        "-4", "-6", "-br", "-brief", "-c", "-color", "-s", "-stats", "-d", "-details", "-o",
        "-oneline", "-j", "-json", "-p",
    }
)  # fmt: skip
_LINK_OBJECTS = frozenset(
    {"a", "ad", "addr", "address", "l", "link", "r", "ro", "route", "n", "neigh", "rule", "maddr"}
)


def _interfaces(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`ip addr`, `ifconfig`, `route -n`: showing is a plain read."""
    texts = [w.text if w.text is not None else "?" for w in call.arguments]
    if name == "ip":
        while texts and texts[0] in _LINK_OPTIONS:
            texts.pop(0)
        shown = bool(texts) and texts[0] in _LINK_OBJECTS
        shown = shown and (len(texts) == 1 or texts[1] in ("show", "list", "ls", "s", "sh", "get"))
    elif name == "ifconfig":
        texts = [t for t in texts if t not in ("-a", "-s", "-v")]
        shown = len(texts) <= 1 and not any(t.startswith(("-", "?")) for t in texts)
    else:
        shown = all(t in ("-n", "-e", "-v", "-4", "-6") for t in texts)
    return Output() if shown else by_table(analysis, call, name, program)


def _manual(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`man ./page.1` shows a file."""
    for word in options.parse(program, call.arguments).operands:
        if "/" in word.known or word.text is None:
            analysis.read(word, call.source)
    return by_table(analysis, call, name, program)


_COMPRESS_READS = frozenset({"-l", "-t", "-c", "--list", "--test", "--stdout", "--to-stdout"})
_COMPRESS_PLAIN = _COMPRESS_READS | {
    "-d", "-k", "-v", "-q", "-n", "-N", "--decompress", "--uncompress", "--keep", "--verbose",
    "--quiet", "--fast", "--best",
}  # fmt: skip


def _compress(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """gzip and its kind: listing, testing and printing leave the files as they are."""
    parsed = options.parse(program, call.arguments)
    given = [o for o, _, _ in parsed.options] + parsed.unknown
    if parsed.unclear or not _COMPRESS_READS.intersection(given):
        return by_table(analysis, call, name, program)
    if not _COMPRESS_PLAIN.issuperset(given):
        return by_table(analysis, call, name, program)
    for word in parsed.operands:
        if word.text != "-":
            analysis.read(word, call.source)
    analysis.origins.append("decoded")
    return Output(None, Kind.ANY, call.given.origins | {"decoded"})


def _tar(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """tar: only a listing is a plain read."""
    words = list(call.arguments)
    if words and words[0].text and not words[0].text.startswith("-"):
        # The old form: letters without a dash, their values after them in order.
        letters = words.pop(0).text or ""
        values = []
        for letter in letters:
            rule = program.options.get(f"-{letter}")
            values.append(literal(f"-{letter}"))
            if rule is not None and rule.takes and words:
                values.append(words.pop(0))
        words = values + words
    parsed = options.parse(program, words)
    modes = {o for o, _, _ in parsed.options}
    lists = bool(modes & {"-t", "--list"}) and not modes & {
        "-x", "-c", "-r", "-u", "-A", "--extract", "--get", "--create", "--append", "--update",
        "--delete", "--concatenate",
    }  # fmt: skip
    archive = parsed.value("-f", "--file")
    if lists:
        parsed.options = [o for o in parsed.options if o[0] not in ("-f", "--file")]
        parsed.operands = []
        if archive is not None and archive.text != "-":
            analysis.read(archive, call.source)
    else:
        analysis.raise_to(Effects.WRITE)
        folder = parsed.value("-C", "--directory")
        if folder is not None:
            analysis.write(folder, call.source)
    if archive is not None and ":" in (archive.text or ":") and not parsed.has("--force-local"):
        analysis.connect(None, call.source, "an archive on another machine", sends=True)
    judge_options(analysis, call, name, program, parsed)
    operands(analysis, call, program, parsed)
    return Output(None, origins=call.given.origins)


def _unzip(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """unzip: listing, testing and printing read; unpacking writes names of the archive's choice."""
    parsed = options.parse(program, call.arguments)
    for word in parsed.operands[:1]:
        analysis.read(word, call.source)
    if not set(parsed.unknown) & {"-l", "-t", "-v", "-Z", "-p"} or "-o" in parsed.unknown:
        analysis.raise_to(Effects.WRITE)
        analysis.unknown("it writes files whose names stand in the archive", call.source)
    return Output()


def _crontab(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    if not parsed.has("-l") or parsed.operands:
        analysis.ask(Concern.PERSISTENCE, "it changes what runs later", call.source)
        analysis.forbid("it changes what runs later, outside the sandbox", call.source)
    return Output()


JUDGES = {
    "manual": _manual, "compress": _compress, "endless": _endless, "interfaces": _interfaces,
    "tar": _tar, "unzip": _unzip,
    "crontab": _crontab,
    "remove": _remove, "rights": _rights, "dd": _dd, "kill": _kill, "pkill": _kill_by_name,
    "date": _date, "sleep": _sleep,
}  # fmt: skip
