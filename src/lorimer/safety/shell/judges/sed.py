"""sed: its script is read, because `e` runs commands and `w` writes files."""

from __future__ import annotations

import re

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import options
from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation, judge_options
from lorimer.safety.shell.table import Program

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|[+~]\d+)\s*")
_STEPS_MAX = 2_000


class NotUnderstood(Exception):
    """The script is not one we can read to its end; with `certain`, neither can sed."""

    def __init__(self, message: str, *, certain: bool = False) -> None:
        super().__init__(message)
        self.certain = certain


def judge(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    where = call.source
    words = list(parsed.operands)
    scripts = [v for o, v, _ in parsed.options if o in ("-e", "--expression") and v is not None]
    files = [v for o, v, _ in parsed.options if o in ("-f", "--file") and v is not None]
    if files:
        analysis.ask(Concern.RUNS_CODE, "a script file of sed may run commands", where)
    if not scripts and not files and words:
        scripts = [words.pop(0)]
    texts = [s.text for s in scripts]
    if None in texts:
        analysis.unknown("the sed script is not known before it runs", where)
    known = "\n".join(t for t in texts if t is not None)
    _both_ways(analysis, call, known)
    in_place = parsed.has("-i", "--in-place", "-I")
    for word in words:
        if word.text == "-":
            continue
        if in_place:
            analysis.write(word, where)
        else:
            analysis.read(word, where)
    if in_place:
        analysis.raise_to(Effects.WRITE)
    return Output(None, origins=call.given.origins)


def _both_ways(analysis: Analysis, call: Invocation, script: str) -> None:
    """Versions of sed differ on a delimiter between brackets: both readings count.

    A reading that no version of sed accepts runs nothing, as long as the other one is read to its
    end.
    """
    faults = []
    for brackets in (True, False) if "[" in script else (True,):
        try:
            _Script(analysis, call, brackets).read(script)
        except NotUnderstood as fault:
            if brackets or not fault.certain:
                faults.append(fault)
    for found in faults[:1]:
        analysis.unknown(f"the sed script is not understood: {found}", call.source)


class _Script:
    """Reads a script command by command; `brackets` protect a delimiter, or they do not."""

    def __init__(self, analysis: Analysis, call: Invocation, brackets: bool) -> None:
        self.brackets = brackets
        self.analysis = analysis
        self.call = call

    def read(self, text: str) -> None:
        place = 0
        for _ in range(_STEPS_MAX):
            while place < len(text) and text[place] in " \t\n;{}":
                place += 1
            if place >= len(text):
                return
            place = self._command(text, place)
        raise NotUnderstood("it is too long")

    def _command(self, text: str, place: int) -> int:
        place = self._address(text, place)
        if text[place : place + 1] == ",":
            place = self._address(text, place + 1)
        while text[place : place + 1] in ("!", " ", "\t") and place < len(text):
            place += 1
        command = text[place : place + 1]
        place += 1
        if command in ("", "{", "}", ";", "\n"):
            return place
        if command == "#":
            return self._line(text, place)
        if command in "aic":
            return self._text(text, place)
        if command in "=dDgGhHnNpPxzF":
            return place
        if command in "qQlL":
            return _skip(text, place, r"[ \t]*\d*")
        if command in "btT:":
            end = _skip(text, place, r"[ \t]*\w*[ \t]*")
            if text[end : end + 1] not in ("", "\n", ";", "}"):
                self._odd("a label that versions of sed read differently")
            return end
        if command == "y":
            delimiter = text[place : place + 1]
            place = self._until(text, place + 1, delimiter, pattern=False)
            return self._until(text, place, delimiter, pattern=False)
        if command == "s":
            return self._substitute(text, place)
        if command in "rRwW":
            end = self._line(text, place)
            self._file(command, text[place:end].strip())
            return end
        if command == "e":
            end = self._line(text, place)
            self._runs("command", text[place:end].strip())
            return end
        if command == "v":
            self._odd("the command v")
            return self._line(text, place)
        raise NotUnderstood(f"the command {command}")

    def _address(self, text: str, place: int) -> int:
        match = _ADDRESS.match(text, place)
        if match:
            return match.end()
        while text[place : place + 1] in (" ", "\t") and place < len(text):
            place += 1
        if text[place : place + 1] == "/":
            place = self._until(text, place + 1, "/")
        elif text[place : place + 1] == "\\" and place + 1 < len(text):
            place = self._until(text, place + 2, text[place + 1])
        else:
            return place
        return _skip(text, place, r"[IM]*[ \t]*")

    def _until(self, text: str, place: int, delimiter: str, *, pattern: bool = True) -> int:
        """The place after the next `delimiter` that is not escaped."""
        if not delimiter or delimiter in "\n\\":
            raise NotUnderstood("a strange delimiter")
        while place < len(text):
            c = text[place]
            if c == "\\":
                place += 2
                continue
            if c == "[" and self.brackets and pattern:
                close = re.compile(r"\[\^?\]?[^\]\n]*\]").match(text, place)
                if close:
                    place = close.end()
                    continue
            if c == delimiter:
                return place + 1
            place += 1
        raise NotUnderstood("an end is missing", certain=True)

    def _substitute(self, text: str, place: int) -> int:
        delimiter = text[place : place + 1]
        place = self._until(text, place + 1, delimiter)
        place = self._until(text, place, delimiter, pattern=False)
        while place < len(text):
            flag = text[place]
            place += 1
            if flag in "gpiIM0123456789 \t":
                continue
            if flag == "e":
                self._runs("flag", "")
            elif flag == "w":
                end = self._line(text, place)
                self._file("w", text[place:end].strip())
                return end
            elif flag in ";\n}#":
                return place - 1 if flag != ";" else place
            else:
                raise NotUnderstood(f"the flag {flag} of s", certain=True)
        return place

    def _text(self, text: str, place: int) -> int:
        """The text of a, i, c: to the end of the line, further after a backslash."""
        if not re.compile(r"(?:[ \t]*\\\n)?[^\\\n]*(?:\n|\Z)").match(text, place):
            self._odd("a text with a backslash")
        while True:
            end = self._line(text, place)
            if end >= len(text) or not text[place:end].endswith("\\"):
                return end
            place = end + 1

    def _odd(self, what: str) -> None:
        self.analysis.unknown(f"the sed script is not understood: {what}", self.call.source)

    def _line(self, text: str, place: int) -> int:
        end = text.find("\n", place)
        return len(text) if end < 0 else end

    def _file(self, command: str, name: str) -> None:
        where = self.call.source
        if command in "rR":
            self.analysis.read(name, where)
        elif name:
            self.analysis.unknown(f"`sed` with `{command}` writes the file {name}", where)
            self.analysis.write(name, where)
        else:
            raise NotUnderstood("a file name is missing")

    def _runs(self, kind: str, text: str) -> None:
        where = self.call.source
        self.analysis.unknown(f"`sed` with the `e` {kind} runs a command", where)
        self.analysis.forbid(f"`sed` with the `e` {kind} runs a command", where)
        if text:
            with self.analysis.inside_of("sed e"):
                self.analysis.run_text(text)


def _skip(text: str, place: int, pattern: str) -> int:
    match = re.compile(pattern).match(text, place)
    return match.end() if match else place
