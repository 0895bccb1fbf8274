"""Programs that delete, move, change rights, end processes or write devices."""

from __future__ import annotations

import re

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import options
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, by_table, judge_options, operands
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Word, literal

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
    for word in words:
        text = word.text
        if text in ("-1", "0", "1", "-0"):
            analysis.forbid("it ends every process of the user or the system", call.source)
        elif text is None:
            analysis.unknown(f"which process it ends is not known: {word.source}", call.source)
    if signal not in ("0", "CONT", "WINCH"):
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


_ENVIRONMENT = re.compile(r"(?<![.\w$\"'])(?:str)?env\b(?!\s*:)|\$ENV\b|\benvsubst\b")
_LOADS = re.compile(r"(?<![.\w])(?:load\w*|import|include|input_filename|modulemeta)\b")


def _filter(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """jq, yq: their programs can read the environment and other files."""
    words: list[Word] = []
    rest = list(call.arguments)
    while rest:
        word = rest.pop(0)
        if word.text in ("--arg", "--argjson", "--slurpfile", "--rawfile") and len(rest) > 1:
            rest.pop(0)
            value = rest.pop(0)
            if word.text in ("--slurpfile", "--rawfile"):
                analysis.read(value, call.source)
            continue
        words.append(word)
    call = call.with_words([call.words[0], *words])
    for word in words:
        if _ENVIRONMENT.search(word.known):
            analysis.ask(Concern.SECRETS, "its filter reads the environment", call.source)
        if _LOADS.search(word.known):
            analysis.unknown("its filter reads other files", call.source)
    return by_table(analysis, call, name, program)


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
    "filter": _filter, "tar": _tar, "unzip": _unzip,
    "crontab": _crontab,
    "remove": _remove, "rights": _rights, "dd": _dd, "kill": _kill, "pkill": _kill_by_name,
    "date": _date, "sleep": _sleep,
}  # fmt: skip
