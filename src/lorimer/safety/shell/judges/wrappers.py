"""Programs that run the program named in their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from lorimer.core.calls import Effects
from lorimer.core.effects import Concern
from lorimer.safety.shell import environment, options
from lorimer.safety.shell.analysis import NO_INPUT, Analysis, Input, Output
from lorimer.safety.shell.invoke import Invocation, apply, judge_options
from lorimer.safety.shell.table import Program
from lorimer.safety.shell.words import Kind, Word, literal, stays_a_name, unknown

_PLAIN_OPTIONS = {
    "command": ("-p",),
    "exec": ("-a", "-c", "-l"),
    "time": ("-p", "-v", "-V"),
}
_TAKING_OPTIONS = {"exec": ("-a",), "time": ("-f", "--format", "-o", "--output")}
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL | re.ASCII)


def inner(
    analysis: Analysis,
    call: Invocation,
    words: Sequence[Word],
    through: str,
    given: Input | None = None,
) -> Output:
    """Judge the command that a wrapper runs."""
    with analysis.inside_of(through):
        return analysis.run(
            replace(
                call, words=tuple(words), given=call.given if given is None else given, walker=None
            )
        )


def _wrap(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """Options, some values, then a command: `timeout 5 ls`, `nice -n 5 ls`, `sudo -u x ls`."""
    parsed = options.parse(program, call.arguments, permute=False)
    apply(analysis, program.always, call.source)
    judge_options(analysis, call, name, program, parsed)
    words = parsed.operands
    while words and words[0].text is not None and (found := _ASSIGNMENT.fullmatch(words[0].text)):
        if name not in ("sudo", "doas", "env"):
            break
        environment.judge(analysis, found[1], literal(found[2]), call.source)
        words = words[1:]
    words = words[int(program.data.get("wrap_values", 0)) :]
    if not words:
        if program.bare is not None:
            apply(analysis, program.bare, call.source)
        return Output()
    return inner(analysis, call, words, name)


def _env(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    words = list(parsed.operands)
    for option, value, _ in parsed.options:
        if option in ("-S", "--split-string") and value is not None:
            analysis.forbid("`env -S` hides a command in a text", call.source)
            split = (value.text or value.known).split()
            words = [*(literal(w) for w in split), *words]
        if option in ("-C", "--chdir"):
            analysis.unknown("`env -C` changes the folder", call.source)
        if option in ("-u", "--unset") and value is not None and value.text:
            environment.judge(analysis, value.text, literal(""), call.source)
    prefixed = []
    while words and (found := _ASSIGNMENT.fullmatch(words[0].text or words[0].head)):
        value = literal(found[2]) if words[0].text is not None else unknown(words[0].source)
        environment.judge(analysis, found[1], value, call.source)
        prefixed.append(found[1])
        words = words[1:]
    if words and words[0].text == "--":
        words = words[1:]
    if not words:
        analysis.ask(Concern.SECRETS, "`env` alone prints the environment", call.source)
        return Output()
    call = replace(call, prefixed=(*call.prefixed, *prefixed))
    return inner(analysis, call, words, "env")


def _builtin_wrap(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`command`, `builtin`, `exec`, `time`, `coproc`, `!`: the walker stays known."""
    words = list(call.arguments)
    while words and words[0].text is not None and words[0].text.startswith("-"):
        option = words.pop(0).text or ""
        if option == "--":
            break
        if name == "command" and re.fullmatch(r"-[vV]+", option):
            return Output()
        if option not in _PLAIN_OPTIONS.get(name, ()):
            analysis.unknown(f"the option {option} of {name} is not in the table", call.source)
        if option in _TAKING_OPTIONS.get(name, ()) or (name == "exec" and option.endswith("a")):
            if words and words[0].many:
                analysis.unknown(f"{words[0].source} may become several words", call.source)
            words = words[1:]
    if name == "coproc":
        analysis.unknown("coproc runs beside the shell", call.source)
        named = len(words) > 1 and words[1].text in ("{", "(")
        words = [w for w in words[named:] if w.text not in ("{", "(")]
    if not words:
        return Output()
    with analysis.inside_of(name):
        walker = None if name in ("command", "builtin") else call.walker
        keeps = name in ("command", "builtin") and words[0].text in (
            "cd", "eval", "read", "export", "printf", "test", "[", "set", "let", "declare", "unset",
        )  # fmt: skip
        inner_call = replace(call, words=tuple(words), walker=call.walker if keeps else walker)
        saved = analysis.state.functions
        if name in ("command", "builtin"):
            analysis.state.functions = {}
        try:
            return analysis.run(inner_call)
        finally:
            analysis.state.functions = saved


def _xargs(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    given = call.given
    command = parsed.operands or [literal("echo")]
    if parsed.has("-a", "--arg-file"):
        given = Input(True)
    mark = None
    for option, value, _ in parsed.options:
        if option in ("-I", "--replace", "-i", "-J"):
            mark = value.text if value is not None and value.text else "{}"
    if given.text is not None and mark is None:
        fed = [literal(w) for w in given.text.split()][:50]
    else:
        kind = given.kind if given.kind in (Kind.NAMES, Kind.NUMBER) else Kind.ANY
        fed = [unknown("a word of the input", kind, given.origins)]
    words = substitute(analysis, call, command, mark, fed[0]) if mark else [*command, *fed]
    return inner(analysis, call, words, "xargs", NO_INPUT)


def substitute(
    analysis: Analysis, call: Invocation, words: Sequence[Word], mark: str, value: Word
) -> list[Word]:
    """`words` with `mark` replaced by a value that is known only when it runs."""
    out = []
    for word in words:
        if word.text is None or mark not in word.text:
            out.append(word)
            continue
        head = word.text.split(mark)[0]
        known = word.text.replace(mark, "")
        kind = value.kind
        if kind is Kind.NAMES and not stays_a_name(head, known[len(head) :]):
            kind = Kind.ANY
        out.append(Word(None, word.text, False, head, kind, False, value.origins, known))
    return out


def _parallel(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """GNU parallel and watch give their words to a shell."""
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    analysis.ask(Concern.RUNS_CODE, f"`{name}` gives a text to a shell", call.source)
    words = parsed.operands
    if not words:
        analysis.unknown(f"`{name}` runs what it reads", call.source)
        if call.given.kind is Kind.NAMES or call.given.origins & {"network", "decoded"}:
            analysis.forbid(f"`{name}` runs what it reads", call.source)
        return Output()
    ends = [w.text for w in words]
    cut = next((i for i, t in enumerate(ends) if t in (":::", ":::+", "::::", ":::::")), len(words))
    text = " ".join(w.text if w.text is not None else f"$({w.known})" for w in words[:cut])
    if any(w.text is None for w in words[:cut]):
        analysis.unknown(f"what `{name}` runs is not known before it runs", call.source)
    with analysis.inside_of(name):
        analysis.run_text(text)
        if cut < len(words) and name == "parallel":
            for value in words[cut + 1 :][:20]:
                analysis.run_text(f"{text} {value.text or ''}")
    return Output()


def _text_option(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """`su -c TEXT`, `script -c TEXT`, `flock FILE -c TEXT`: a shell runs the text."""
    apply(analysis, program.always, call.source)
    parsed = options.parse(program, call.arguments, permute=name != "flock")
    judge_options(analysis, call, name, program, parsed)
    texts = [v for o, v, _ in parsed.options if o in ("-c", "--command") and v is not None]
    words = parsed.operands
    if name == "flock":
        if words:
            analysis.write(words[0], call.source)
        words = words[1:]
        if words[:1] and words[0].text in ("-c", "--command"):
            texts, words = words[1:2], []
        if words:
            return inner(analysis, call, words, name)
    for text in texts:
        run_shell_text(analysis, call, text, name)
    return Output()


def run_shell_text(analysis: Analysis, call: Invocation, text: Word, through: str) -> None:
    """A text that a program gives to a shell."""
    analysis.ask(Concern.RUNS_CODE, f"`{through}` gives a text to a shell", call.source)
    if text.origins & {"network", "decoded"}:
        analysis.forbid("text from the network or decoded text is run", call.source)
    if text.text is None:
        analysis.unknown("the text that a shell runs is not known before it runs", call.source)
    with analysis.inside_of(through):
        analysis.run_text(text.text if text.text is not None else text.known)


def _busybox(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    words = call.arguments
    if not words or (words[0].text or "").startswith("--"):
        return Output()
    return inner(analysis, call, words, name)


def _remote(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """ssh: what runs there is judged as if it ran here."""
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    for option, value, _ in parsed.options:
        if option == "-o" and value is not None:
            ssh_option(analysis, call, value)
    words = parsed.operands
    if not words:
        return Output()
    host = words[0].text
    plain = host.rpartition("@")[2].removeprefix("ssh://").split("/")[0] if host else None
    if host is None or words[0].may_be_option:
        analysis.unknown("which host it connects to is not known", call.source)
    analysis.connect(plain, call.source, f"`{name}` connects to {words[0]}", sends=True)
    analysis.raise_to(Effects.IRREVERSIBLE)
    if len(words) > 1:
        text = " ".join(w.text if w.text is not None else w.known for w in words[1:])
        with analysis.inside_of(name):
            analysis.run_text(text)
    return Output(None, Kind.ANY, frozenset({"network"}))


_SSH_RUNS = re.compile(
    r"(?i)\s*(proxycommand|localcommand|permitlocalcommand|knownhostscommand|pkcs11provider"
    r"|securitykeyprovider|proxyusefdpass|remotecommand|include|match|sendenv|setenv|xauthlocation)\b"
)
_SSH_SAFE = re.compile(
    r"(?i)\s*(stricthostkeychecking|batchmode|connecttimeout|loglevel|serveralive\w+|port|user"
    r"|identitiesonly|controlmaster|controlpersist|addressfamily|compression|preferredauthentications)\b"
)


def ssh_option(analysis: Analysis, call: Invocation, value: Word) -> None:
    """`-o Name=value` of ssh, scp and sftp."""
    text = value.text if value.text is not None else value.head
    if _SSH_RUNS.match(text):
        analysis.forbid("an ssh option runs a local command", call.source)
        command = re.split(r"[=\s]", text.strip(), maxsplit=1)
        if len(command) > 1:
            with analysis.inside_of("ssh -o"):
                analysis.run_text(command[1])
    elif not _SSH_SAFE.match(text) or value.text is None:
        analysis.unknown(f"the ssh option {text} is not in the table", call.source)


def _debugger(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """strace, gdb: the first words that are a known program run."""
    from lorimer.safety.shell.table import is_known

    apply(analysis, program.always, call.source)
    parsed = options.parse(program, call.arguments, permute=False)
    judge_options(analysis, call, name, program, parsed)
    for option, value, rule in parsed.options:
        if rule.effect == "run" and value is not None and value.text:
            found = re.match(r"\s*(?:!|shell|make|python)\s*(.*)", value.text, re.DOTALL)
            if found and found[1]:
                with analysis.inside_of(f"{name} {option}"):
                    analysis.run_text(found[1])
    words = list(call.arguments)
    while words and not (words[0].text is not None and is_known(words[0].text.rpartition("/")[2])):
        words = words[1:]
    return inner(analysis, call, words, name) if words else Output()


def _editor(analysis: Analysis, call: Invocation, name: str, program: Program) -> Output:
    """vim -c '!…', expect -c, tmux new '…': commands of an editor can be commands of a shell."""
    apply(analysis, program.always, call.source)
    parsed = options.parse(program, call.arguments)
    judge_options(analysis, call, name, program, parsed)
    for word in call.arguments:
        found = re.search(r"(?:!|\bsystem\(|\bspawn\b|\bshell-command\b|\bexec\b)[\s'\"(]*(.*)",
                          word.text or "", re.DOTALL)  # fmt: skip
        if found:
            analysis.forbid(f"`{name}` is told to run a command", call.source)
            if found[1]:
                with analysis.inside_of(name):
                    analysis.run_text(found[1].rstrip("'\")"))
    for word in parsed.operands:
        if word.text and not word.text.startswith("+"):
            analysis.read(word, call.source)
    if name in ("tmux", "screen", "byobu", "zellij"):
        for word in parsed.operands:
            if word.text and " " in word.text:
                with analysis.inside_of(name):
                    analysis.run_text(word.text)
    return Output()


JUDGES = {
    "debugger": _debugger, "editor": _editor,
    "wrap": _wrap, "env": _env, "builtin-wrap": _builtin_wrap, "xargs": _xargs,
    "parallel": _parallel, "text-option": _text_option, "busybox": _busybox, "ssh": _remote,
}  # fmt: skip
