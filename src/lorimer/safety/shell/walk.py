"""The walk over a syntax tree: statements in order, with what each leaves behind for the next."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lorimer.safety.shell import environment, grammar
from lorimer.safety.shell.analysis import NO_INPUT, TEXT_MAX, Analysis, Input, Output, TooMuch
from lorimer.safety.shell.conditions import TestExpressions
from lorimer.safety.shell.control import Control
from lorimer.safety.shell.expand import SUBSTITUTION, Expander
from lorimer.safety.shell.grammar import of
from lorimer.safety.shell.invoke import Invocation
from lorimer.safety.shell.redirect import Redirections
from lorimer.safety.shell.state import join
from lorimer.safety.shell.words import Kind, Word, literal

if TYPE_CHECKING:
    from tree_sitter import Node

RUNS = frozenset(
    {
        "command", "declaration_command", "unset_command", "test_command", "function_definition",
        "command_substitution", "process_substitution",
    }
)  # fmt: skip
_HEAD = re.compile(r"head(\s+-(n\s*)?\d{1,6}|\s+-c\s*\d{1,7})?")
_BRACED = re.compile(r"(^|[;&|\n(]\s*)\{([^\s{},]+(?:,[^\s{},]+)+)\}")


def walk(analysis: Analysis, text: str) -> Output:
    """Judge a whole text; what it finds goes into `analysis`."""
    if len(text) > TEXT_MAX:
        raise TooMuch(f"it is longer than {TEXT_MAX} characters")
    root = grammar.parse(text)
    source = text.encode("utf-8", "replace")
    faults = list(grammar.faults(root, source)) or list(grammar.heredoc_faults(root, source))
    for fault in faults[:5]:
        analysis.unknown(f"not understood: {fault}", text)
    if faults and _BRACED.search(text):
        # `{rm,-rf,x}` is a command to bash and no command to the grammar.
        with analysis.inside_of("{…}"):
            analysis.run_text(_BRACED.sub(lambda m: m[1] + m[2].replace(",", " "), text))
    if any(fault.startswith(grammar.TOO_MUCH) for fault in faults):
        return Output()
    walker = Walker(analysis, text)
    output = walker.sequence(root)
    walker.check_all_seen(root)
    return output


class Walker(Control):
    """Judges the statements of one text."""

    def __init__(self, analysis: Analysis, text: str) -> None:
        self.analysis = analysis
        self.text = text
        self.expander = Expander(self)
        self.redirections = Redirections(self)
        self.tests = TestExpressions(self)
        self.seen: set[int] = set()
        self._kinds: dict[str, Callable[[Node, Input], Output]] = {
            "command": self._command,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "test_command": self._test,
            "variable_assignment": self._assignments,
            "variable_assignments": self._assignments,
            "redirected_statement": self._redirected,
            "negated_command": self._grouped,
            "compound_statement": self._compound,
            "do_group": self._grouped,
            "else_clause": self._grouped,
            "subshell": self._subshell,
            "pipeline": self._pipeline,
            "list": self._list,
            "if_statement": self._if,
            "elif_clause": self._if,
            "while_statement": self._loop,
            "for_statement": self._for,
            "c_style_for_statement": self._c_for,
            "case_statement": self._case,
            "function_definition": self._function,
        }

    # order

    def sequence(self, node: Node, given: Input = NO_INPUT) -> Output:
        return self.statements(node.children, given)

    def statements(self, nodes: Sequence[Node], given: Input = NO_INPUT) -> Output:
        """One after the other; `&` after a statement runs it beside the rest."""
        texts: list[str | None] = []
        kinds: set[Kind] = set()
        origins: frozenset[str] = frozenset()
        for number, node in enumerate(nodes):
            if not node.is_named or node.type in ("comment", "heredoc_body", "file_descriptor"):
                continue
            follows = nodes[number + 1] if number + 1 < len(nodes) else None
            if follows is not None and follows.type == "&":
                with self._beside():
                    output = self.statement(node, given)
            else:
                output = self.statement(node, given)
            self.analysis.state.settle()
            texts.append(output.text)
            kinds.add(output.kind)
            origins |= output.origins
        kind = kinds.pop() if len(kinds) == 1 else Kind.ANY
        text = None if None in texts else "".join(t or "" for t in texts)
        return Output(text, kind, origins)

    def statement(self, node: Node, given: Input = NO_INPUT) -> Output:
        judge = self._kinds.get(node.type)
        if judge is None:
            self.redirections.pending.pop(node.id, None)
            if node.type != "ERROR":
                self.analysis.unknown(f"not understood: {node.type}", of(node))
            return self.statements(node.children, given)
        mark = len(self.analysis.origins)
        around = self.redirections.pending.pop(node.id, None)
        if around is not None:
            output = self.redirections.apply(around, node, given)
        else:
            output = judge(node, given)
        added = frozenset(self.analysis.origins[mark:])
        return Output(output.text, output.kind, output.origins | added)

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Runs in a process of its own: what it sets is lost."""
        before = self.analysis.state
        self.analysis.state = before.copy()
        self.analysis.parallel += 1
        try:
            yield
        finally:
            self.analysis.parallel -= 1
            self.analysis.state = before

    def _grouped(self, node: Node, given: Input) -> Output:
        return self.sequence(node, given)

    def _compound(self, node: Node, given: Input) -> Output:
        if node.children and node.children[0].type == "((":
            self.arithmetic_statement(node)
            return Output("")
        return self.sequence(node, given)

    def arithmetic_statement(self, node: Node) -> None:
        self.expander.arithmetic(node)
        self.assigned_in_arithmetic(node)

    def _subshell(self, node: Node, given: Input) -> Output:
        before = self.analysis.state
        self.analysis.state = before.copy()
        try:
            return self.sequence(node, given)
        finally:
            self.analysis.state = before

    def _pipeline(self, node: Node, given: Input, first: Output | None = None) -> Output:
        """Each part reads what the part before it prints."""
        mark = len(self.analysis.origins)
        output = first
        for child in node.children:
            if not child.is_named or child.type == "comment":
                continue
            if output is not None:
                given = as_input(output)
            following = child.next_named_sibling
            cut = following is not None and _HEAD.fullmatch(of(following)) and ">" not in of(child)
            self.analysis.cut = of(child) if cut else ""
            with self._beside():
                output = self.statement(child, given)
            added = frozenset(self.analysis.origins[mark:])
            output = Output(output.text, output.kind, output.origins | added)
        return output or Output()

    def _list(self, node: Node, given: Input) -> Output:
        operator = _operator(node)
        if operator == "&&":
            return self._all(_chain(node), given)
        first = self.statement(node.named_children[0], given)
        second = self.right_side(node.named_children[-1], operator, given)
        kind = first.kind if first.kind is second.kind else Kind.ANY
        return Output(None, kind, first.origins | second.origins)

    def _all(self, nodes: Sequence[Node], given: Input) -> Output:
        """`a && b && c`: each runs only after all before it have succeeded."""
        outputs = [self.statement(nodes[0], given)]
        failed: tuple[str, ...] | None = ()
        with self._perhaps():
            for node in nodes[1:]:
                failed = join(failed, self.analysis.state.if_failed)
                self.analysis.state.if_failed = ()
                outputs.append(self.statement(node, given))
        self.analysis.state.if_failed = join(failed, self.analysis.state.if_failed)
        texts = [output.text for output in outputs]
        kinds = {output.kind for output in outputs}
        origins = frozenset(origin for output in outputs for origin in output.origins)
        text = None if None in texts else "".join(t or "" for t in texts)
        return Output(text, kinds.pop() if len(kinds) == 1 else Kind.ANY, origins)

    def right_side(self, right: Node, operator: str, given: Input = NO_INPUT) -> Output:
        """What stands after `&&` or `||`: it may run."""
        state = self.analysis.state
        failed, state.if_failed = state.if_failed, ()
        if operator != "&&":
            state.if_failed = failed
            state.settle()
            failed = ()
        with self._perhaps():
            output = self.statement(right, given)
        self.analysis.state.if_failed = failed
        return output

    # leaves

    def substitute(self, node: Node) -> Output:
        """What `$(…)`, backquotes or `<(…)` print."""
        self.seen.add(node.id)
        first = node.children[0].type if node.children else ""
        mark = len(self.analysis.origins)
        source = of(node)
        if "`" in first and "\\" in source:
            self.analysis.unknown("backslashes in backquotes change what runs", source)
            inner = source.strip()[1:-1]
            for a in ("\\`", "\\$", "\\\\"):
                inner = inner.replace(a, a[1:])
            self.analysis.run_text(inner)
        before = self.analysis.state
        self.analysis.state = before.copy()
        self.analysis.nesting += 1
        if self.analysis.nesting > 2 * 12:
            raise TooMuch("substitutions are nested too deep")
        try:
            redirect = [c for c in node.named_children if c.type == "file_redirect"]
            for child in redirect:
                self.redirections.judge(child)
            rest = [c for c in node.children if c.type != "file_redirect"]
            output = self.statements(rest)
            if redirect and len(node.named_children) == len(redirect):
                output = Output(None)
        finally:
            self.analysis.nesting -= 1
            self.analysis.state = before
        added = frozenset(self.analysis.origins[mark:])
        return Output(output.text, output.kind, output.origins | added)

    def _command(self, node: Node, given: Input) -> Output:
        self.seen.add(node.id)
        return self._simple(node, node.children, given)

    def _simple(
        self, node: Node, parts: Sequence[Node], given: Input, extra: Sequence[Word] = ()
    ) -> Output:
        words: list[Word] = []
        assigned: list[tuple[str, Word | None]] = []
        prints = True
        for child in parts:
            if child.type == "variable_assignment":
                assigned.append(self._assignment(child, judged=False))
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                given, keeps = self.redirections.take(child, given, words)
                prints = prints and keeps
            elif child.is_named and child.type not in ("comment", "file_descriptor"):
                words += self.expander.words(child)
            elif child.type == "$":
                self.analysis.unknown("not understood: a $ that stands alone", of(node))
            elif not child.is_named and child.type not in ("\n", ";"):
                words.append(literal(of(child)))
        words += extra
        for name, value in assigned:
            # `IFS= read` changes how that one line is split, and nothing else.
            if not (name == "IFS" and words and words[0].text in ("read", "mapfile")):
                environment.judge(self.analysis, name, value, of(node))
        if not words:
            # No program: the variables are this shell's own.
            for name, value in assigned:
                self.analysis.state.assign(name, value)
            return Output("")
        call = Invocation(tuple(words), of(node), given, self, tuple(n for n, _ in assigned))
        output = self.analysis.run(call)
        return output if prints else Output("", origins=output.origins)

    def _assignments(self, node: Node, given: Input) -> Output:
        nodes = [node] if node.type == "variable_assignment" else node.named_children
        for child in nodes:
            if child.type == "variable_assignment":
                name, value = self._assignment(child)
                self.analysis.state.assign(name, value)
            else:
                self.analysis.unknown(f"not understood: {child.type}", of(child))
                self.expander.pieces(child)
        return Output("")

    def _assignment(self, node: Node, *, judged: bool = True) -> tuple[str, Word | None]:
        """(name, value) of `name=value`; whatever runs in it is judged."""
        name_node = node.child_by_field_name("name")
        value_node = node.child_by_field_name("value")
        appended = any(c.type == "+=" for c in node.children)
        name = of(name_node) if name_node is not None else ""
        if name_node is not None and name_node.type == "subscript":
            self.expander.subscript(name_node)
            name = name.split("[")[0]
            appended = True
        mark = len(self.analysis.origins)
        value: Word | None = literal("")
        if value_node is not None:
            value = self.expander.single(value_node)
            if value_node.type == "array":
                self.analysis.state.arrays.add(name)
                value = Word(None, of(value_node), kind=Kind.ANY)
        if value is not None and value.text is not None and SUBSTITUTION.search(value.text):
            self.analysis.unknown(
                f"{name} holds a text that would run if it is evaluated", of(node)
            )
        added = frozenset(self.analysis.origins[mark:])
        if judged:
            environment.judge(self.analysis, name, value, of(node))
        if appended or value is None:
            return name, Word(None, of(node), origins=added, kind=Kind.ANY)
        if value.text is None:
            return name, Word(None, value.source, kind=value.kind, origins=value.origins | added)
        return name, literal(value.text)

    def _declaration(self, node: Node, given: Input) -> Output:
        """`export`, `declare`, `local`, `readonly`, `unset`: names and values."""
        from lorimer.safety.shell.judges.builtins import declare

        self.seen.add(node.id)
        program = of(node.children[0])
        words: list[Word] = []
        values: dict[str, Word | None] = {}
        self._associative(program, node)
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                name, value = self._assignment(child)
                self.analysis.state.assign(name, value)
                words.append(literal(f"{name}="))
                value_node = child.child_by_field_name("value")
                if value_node is not None and value_node.type != "array":
                    values[name] = value
            elif child.is_named and child.type != "comment":
                words += self.expander.words(child)
        declare(self.analysis, self, program, words, of(node), values)
        return Output(None if program != "unset" and not words else "")

    def _associative(self, program: str, node: Node) -> None:
        """`declare -A m` on its own: the subscripts of `m` are texts from here on."""
        state = self.analysis.state
        parts = node.named_children
        options = [of(c) for c in parts if c.type == "word" and of(c).startswith(("-", "+"))]
        for child in parts:
            named = child if child.type == "variable_name" else child.child_by_field_name("name")
            name = of(named) if named is not None else of(child)
            plain = options == ["-A"] and program in ("declare", "typeset")
            if plain and not self.analysis.running and not self.analysis.state.volatile:
                state.associative.add(name)
            else:
                state.associative.discard(name)

    def _test(self, node: Node, given: Input) -> Output:
        self.seen.add(node.id)
        self.tests.judge(node)
        return Output("")

    def _redirected(self, node: Node, given: Input) -> Output:
        return self.redirections.statement(node, given)

    # the net below all of it

    def check_all_seen(self, root: Node) -> None:
        """Whatever can run and was not judged makes the text "not understood"."""
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type in RUNS and node.id not in self.seen:
                self.analysis.unknown("not understood: a part that runs", of(node))
                return
            stack.extend(node.children)


def _operator(node: Node) -> str:
    return next((c.type for c in node.children if not c.is_named), "")


def _chain(node: Node) -> list[Node]:
    """The operands of `a && b && c`, which the tree nests to the left."""
    parts: list[Node] = []
    while node.type == "list" and _operator(node) == "&&":
        parts.append(node.named_children[-1])
        node = node.named_children[0]
    return [node, *reversed(parts)]


def as_input(output: Output) -> Input:
    return Input(True, output.text, output.kind, output.origins)
