"""Ways to write one command inside another text, for the metamorphic tests."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

Wrap = Callable[[str], str]


def _quoted(text: str) -> str:
    return shlex.quote(text)


RUNNING: dict[str, Wrap] = {
    "sh -c": lambda c: f"sh -c {_quoted(c)}",
    "bash -c twice": lambda c: f"bash -c {_quoted('sh -c ' + _quoted(c))}",
    "eval": lambda c: f"eval {_quoted(c)}",
    "after ;": lambda c: f"ls; {c}",
    "after &&": lambda c: f"ls && {c}",
    "after ||": lambda c: f"false || {c}",
    "after &": lambda c: f"ls & {c}",
    "after |": lambda c: f"ls | {c}",
    "after a new line": lambda c: f"ls\n{c}",
    "after a comment": lambda c: f"ls # nothing\n{c}",
    "after blank lines": lambda c: f"\n\n  \t{c}",
    "before ;": lambda c: f"{c}\nls",
    "subshell": lambda c: f"( {c}\n)",
    "braces": lambda c: f"{{ {c}\n}}",
    "not": lambda c: f"! {c}",
    "if condition": lambda c: f"if {c}\nthen ls; fi",
    "then": lambda c: f"if ls; then {c}\nfi",
    "else": lambda c: f"if ls; then ls; else {c}\nfi",
    "elif": lambda c: f"if ls; then ls; elif {c}\nthen ls; fi",
    "while condition": lambda c: f"while {c}\ndo break; done",
    "loop": lambda c: f"for i in 1 2; do {c}\ndone",
    "case": lambda c: f"case a in a) {c}\n;; esac",
    "function": lambda c: f"f() {{ {c}\n}}; f",
    "function of a keyword": lambda c: f"function g {{ {c}\n}}\ng",
    "substitution": lambda c: f"echo $({c}\n)",
    "substitution in quotes": lambda c: f'echo "a $({c}\n) b"',
    "nested substitution": lambda c: f"echo $(ls $({c}\n))",
    "assignment": lambda c: f"x=$({c}\n)",
    "assignment before a command": lambda c: f"X=$({c}\n) ls",
    "array": lambda c: f"x=(a $({c}\n) b)",
    "subscript": lambda c: f"x[$({c}\n)]=1",
    "parameter default": lambda c: f"echo ${{x:-$({c}\n)}}",
    "parameter default in quotes": lambda c: f'echo "${{x:=$({c}\n)}}"',
    "arithmetic": lambda c: f"echo $(( $({c}\n) + 1 ))",
    "arithmetic command": lambda c: f"(( $({c}\n) ))",
    "test": lambda c: f'[ "$({c}\n)" = x ]',
    "double test": lambda c: f"[[ $({c}\n) ]]",
    "list of a loop": lambda c: f"for i in $({c}\n); do ls; done",
    "word of a case": lambda c: f"case $({c}\n) in a) ls;; esac",
    "here-document": lambda c: f"cat <<EOF\n$({c}\n)\nEOF",
    "here-document to a shell": lambda c: f"bash <<'END'\n{c}\nEND",
    "here-document to a pipe": lambda c: f"cat <<'END' | sh\n{c}\nEND",
    "here-string": lambda c: f'cat <<< "$({c}\n)"',
    "here-string to a shell": lambda c: f"bash <<< {_quoted(c)}",
    "process substitution": lambda c: f"cat <({c}\n)",
    "process substitution out": lambda c: f"ls > >({c}\n)",
    "target of a redirection": lambda c: f"ls > /dev/$({c}\n)",
    "echo to a shell": lambda c: f"printf '%s' {_quoted(c)} | sh",
    "find -exec": lambda c: f"find . -exec sh -c {_quoted(c)} \\;",
    "xargs": lambda c: f"ls | xargs sh -c {_quoted(c)}",
    "timeout": lambda c: f"timeout 5 sh -c {_quoted(c)}",
    "sudo": lambda c: f"sudo sh -c {_quoted(c)}",
    "env": lambda c: f"env A=1 sh -c {_quoted(c)}",
    "nice and nohup": lambda c: f"nohup nice -n 5 sh -c {_quoted(c)}",
    "command": lambda c: f"command eval {_quoted(c)}",
    "exec": lambda c: f"exec bash -c {_quoted(c)}",
    "coproc": lambda c: f"coproc sh -c {_quoted(c)}",
    "trap": lambda c: f"trap {_quoted(c)} EXIT",
    "alias": lambda c: f"alias ls={_quoted(c)}",
    "su": lambda c: f"su -c {_quoted(c)}",
    "watch": lambda c: f"watch {_quoted(c)}",
    "variable": lambda c: f'x={_quoted(c)}; eval "$x"',
    "variable to a shell": lambda c: f'x={_quoted(c)}; sh -c "$x"',
    "busybox": lambda c: f"busybox sh -c {_quoted(c)}",
    "env -S": lambda c: f"env -S {_quoted('sh -c ' + _quoted(c))}",
    "after cd": lambda c: f"cd src && {c}",
    "time": lambda c: f"time {c}",
}
"""Each of these runs the command, or would for some input."""


def respelled(command: str) -> Iterator[tuple[str, str]]:
    """The same command with its first word written in other ways."""
    word, _, rest = command.partition(" ")
    if not word.isascii() or not word.isalnum() or len(word) < 2:
        return
    yield "backslash", f"\\{command}"
    yield "backslash inside", f"{word[0]}\\{word[1:]} {rest}"
    yield "single quotes", f"'{word}' {rest}"
    yield "double quotes", f'"{word}" {rest}'
    yield "half quoted", f"{word[0]}'{word[1:]}' {rest}"
    yield "empty quotes", f"{word[0]}''{word[1:]} {rest}"
    yield "ANSI-C", "$'" + "".join(f"\\x{ord(c):02x}" for c in word) + f"' {rest}"
    yield "octal", "$'" + "".join(f"\\{ord(c):03o}" for c in word) + f"' {rest}"
    yield "variable", f"v={word}; $v {rest}"
    yield "variable in braces", f"v={word[0]}; ${{v}}{word[1:]} {rest}"
    yield "substitution", f"$(echo {word}) {rest}"
    yield "backquotes", f"`echo {word}` {rest}"
    yield "printf", f"$(printf {word}) {rest}"
    yield "full path", f"/usr/bin/{command}"
    yield "long way round", f"/usr/bin/../bin/{command}"
    yield "line continuation", f"{word[0]}\\\n{word[1:]} {rest}"
    yield "continuation after it", f"{word} \\\n {rest}"
    yield "redirection first", f"2>/dev/null {command}"
    yield "assignment first", f"A=1 {command}"
    yield "brace", f"{{{word},}} {rest}"
    yield "loop", f"for v in {word}; do $v {rest}\ndone"
    yield "upper case", f"{word.upper()} {rest}"


HARMLESS: dict[str, Wrap] = {
    "true &&": lambda c: f"true && {c}",
    "; true": lambda c: f"{c}\ntrue",
    "blanks": lambda c: f"  {c}  ",
    "new line": lambda c: f"{c}\n",
    "subshell": lambda c: f"( {c}\n)",
    "braces": lambda c: f"{{ {c}\n}}",
    "if": lambda c: f"if true; then {c}\nfi",
    "for": lambda c: f"for i in 1 2; do {c}\ndone",
    "or": lambda c: f"false || {c}",
    "comment before": lambda c: f"# look\n{c}",
    "echo before": lambda c: f"echo '--- rm -rf / ---'; {c}",
    "twice": lambda c: f"{c}\n{c}",
    "output": lambda c: f"{{ {c}\n}} > /dev/null 2>&1",
    "group to head": lambda c: f"{{ {c}\n}} | head -5",
    "group to sort": lambda c: f"( {c}\n) 2>/dev/null | sort | uniq -c",
    "substitution": lambda c: f'echo "$( {c}\n)"',
    "not": lambda c: f"! {c}",
}
