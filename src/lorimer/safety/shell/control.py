"""Control flow: parts that may run or not, run again, or run later under a name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lorimer.safety.shell import environment
from lorimer.safety.shell.analysis import NO_INPUT, Analysis, Input, Output
from lorimer.safety.shell.expand import names_assigned
from lorimer.safety.shell.grammar import of
from lorimer.safety.shell.words import Kind, Word, literal

if TYPE_CHECKING:
    from tree_sitter import Node

    from lorimer.safety.shell.expand import Expander
    from lorimer.safety.shell.redirect import Redirections

_ALWAYS = frozenset({":", "true", "[ 1 ]", "((1))", "[[ 1 ]]", "/bin/true", "(( 1 ))"})
_NEVER = frozenset({"false", "[ ]", "((0))", "[[ 0 ]]", "/bin/false", "! true", "! :"})


class Control(ABC):
    """The half of a walker that knows loops, branches and functions."""

    analysis: Analysis
    expander: Expander
    redirections: Redirections
    seen: set[int]

    @abstractmethod
    def statement(self, node: Node, given: Input = NO_INPUT) -> Output:
        """Judge one statement."""

    @abstractmethod
    def statements(self, nodes: Sequence[Node], given: Input = NO_INPUT) -> Output:
        """Judge statements in order."""

    def assigned_in_arithmetic(self, node: Node) -> None:
        """Note the variables that an arithmetic expression sets."""
        stack = [node]
        while stack:
            child = stack.pop()
            if child.type in ("variable_assignment", "postfix_expression", "binary_expression"):
                first = child.named_children[0] if child.named_children else None
                operator = next((c.type for c in child.children if not c.is_named), "")
                writes = child.type != "binary_expression" or operator.endswith("=")
                if first is not None and writes and first.type in ("word", "variable_name"):
                    number = Word(None, of(first), kind=Kind.NUMBER)
                    self.analysis.state.assign(of(first), number)
                    environment.judge(self.analysis, of(first), number, of(node))
            stack.extend(child.children)

    @contextmanager
    def _perhaps(self) -> Iterator[None]:
        """May run or not: afterwards both is possible."""
        before = self.analysis.state.copy()
        yield
        self.analysis.state.settle()
        self.analysis.state.merge(before)

    def _if(self, node: Node, given: Input) -> Output:
        outputs = []
        condition = node.children_by_field_name("condition")
        parts = {c.id for c in condition}
        outputs.append(self.statements(condition, given))
        with self._perhaps():
            body = [c for c in node.children if c.id not in parts and c.is_named]
            plain = [c for c in body if c.type not in ("elif_clause", "else_clause")]
            if node.type == "elif_clause" and not condition:
                plain = [c for c in node.children if c.is_named]
            outputs.append(self.statements(plain, given))
        for clause in (c for c in node.named_children if c.type in ("elif_clause", "else_clause")):
            with self._perhaps():
                outputs.append(self.statement(clause, given))
        return either(outputs)

    def _unsettle(self, node: Node) -> None:
        """What a repeated part assigns is not known when it begins again."""
        state = self.analysis.state
        numbers: dict[str, bool] = {}
        for name, number in names_assigned(node):
            numbers[name] = numbers.get(name, True) and number
        for name, number in numbers.items():
            state.assign(name, Word(None, f"${name}", kind=Kind.NUMBER) if number else None)

    def _unsettled(self, node: Node, before: Mapping[str, Word | None]) -> bool:
        """Whether the body set variables in a way that its text does not show; they are forgotten,
        so that a second look sees what a second round would."""
        seen = {name for name, _ in names_assigned(node)}
        variables = self.analysis.state.variables
        changed = [
            name
            for name, value in variables.items()
            if name not in seen and before.get(name) != value and value is not None
        ]
        for name in changed:
            variables[name] = None
        gone = [n for n, v in variables.items() if v is None and before.get(n) is not None]
        return bool(changed or any(n not in seen for n in gone))

    def _loop(self, node: Node, given: Input) -> Output:
        self._unsettle(node)
        condition = node.children_by_field_name("condition")
        parts = {c.id for c in condition}
        ends = _NEVER if node.children[0].type == "until" else _ALWAYS
        if any(of(c).strip() in ends for c in condition) and "break" not in of(node):
            self.analysis.unknown("the loop never ends", of(node))
        with self._perhaps():
            head = self.statements(condition, given)
            rest = [c for c in node.children if c.id not in parts]
            body = self._body_twice(node, rest, given)
        return Output(None, body.kind, head.origins | body.origins)

    def _body_twice(self, node: Node, body: Sequence[Node], given: Input) -> Output:
        """A body that changes the folder is judged again from where it ended."""
        folders = self.analysis.state.folders
        before = dict(self.analysis.state.variables)
        output = self.statements(body, given)
        moved = self.analysis.state.folders != folders
        if self._unsettled(node, before) or moved:
            if moved:
                self.analysis.state.folders = None
            output = self.statements(body, given)
        self._unsettle(node)
        return Output(None, output.kind, output.origins)

    def _for(self, node: Node, given: Input) -> Output:
        variable = node.child_by_field_name("variable")
        name = of(variable) if variable is not None else "?"
        values = node.children_by_field_name("value")
        words = [word for value in values for word in self.expander.words(value)]
        body = [c for c in node.children if c.type in ("do_group", "compound_statement")]
        if any(c.type == "select" for c in node.children):
            self.analysis.unknown("select waits for an answer", of(node))
        origins = frozenset(o for w in words for o in w.origins)
        outputs = []
        with self._perhaps():
            for word in _samples(words) if values else [None]:
                self._unsettle(node)
                environment.judge(self.analysis, name, word, of(node))
                self.analysis.state.assign(name, word)
                outputs.append(self._body_twice_for(node, body, given, name, word))
        output = either(outputs)
        return Output(None, output.kind, output.origins | origins)

    def _body_twice_for(
        self, node: Node, body: Sequence[Node], given: Input, name: str, word: Word | None
    ) -> Output:
        folders = self.analysis.state.folders
        before = dict(self.analysis.state.variables)
        output = self.statements(body, given)
        moved = self.analysis.state.folders != folders
        if self._unsettled(node, before) or moved:
            if moved:
                self.analysis.state.folders = None
            self.analysis.state.assign(name, word)
            output = self.statements(body, given)
        return output

    def _c_for(self, node: Node, given: Input) -> Output:
        for field in ("initializer", "condition", "update"):
            for part in node.children_by_field_name(field):
                if part.type == "variable_assignment":
                    self.assigned_in_arithmetic(part)
        self._unsettle(node)
        head = [c for c in node.named_children if c.type not in ("do_group", "compound_statement")]
        for part in head:
            self.assigned_in_arithmetic(part)
        for part in head:
            self.expander.arithmetic(part) if part.named_child_count else None
        if not node.children_by_field_name("condition"):
            self.analysis.unknown("the loop never ends", of(node))
        with self._perhaps():
            body = [c for c in node.children if c.type in ("do_group", "compound_statement")]
            return self._body_twice(node, body, given)

    def _case(self, node: Node, given: Input) -> Output:
        value = node.child_by_field_name("value")
        if value is not None:
            self.expander.single(value)
        outputs = [Output("")]
        for item in (c for c in node.named_children if c.type == "case_item"):
            patterns = item.children_by_field_name("value")
            ids = {p.id for p in patterns}
            for pattern in patterns:
                self.expander.single(pattern)
            with self._perhaps():
                body = [c for c in item.children if c.id not in ids]
                outputs.append(self.statements(body, given))
        return either(outputs)

    def _function(self, node: Node, given: Input) -> Output:
        """A function: judged where it is defined, and again at each call."""
        analysis = self.analysis
        self.seen.add(node.id)
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        name = of(name_node) if name_node is not None else ""
        if body is None:
            analysis.unknown("not understood: a function without a body", of(node))
            return Output("")
        from lorimer.safety.shell.table import is_known

        if is_known(name) or not name.replace("_", "").replace("-", "").isalnum():
            analysis.unknown(f"the function {name} takes the place of a program", of(node))
        analysis.state.functions[name] = body
        before = analysis.state.copy()
        analysis.state.volatile |= {n for n, _ in names_assigned(body)}
        for number in range(10):
            analysis.state.assign(str(number), None)
        for redirect in node.children_by_field_name("redirect"):
            self.redirections.judge(redirect)
        with self._running(name), analysis.inside_of(f"{name}()"):
            self.statement(body, NO_INPUT)
        volatile = analysis.state.volatile
        analysis.state = before
        analysis.state.volatile = volatile
        for name_set in volatile:
            if name_set in analysis.state.variables:
                analysis.state.variables[name_set] = None
        return Output("")

    @contextmanager
    def _running(self, name: str) -> Iterator[None]:
        self.analysis.running.append((name, self.analysis.parallel))
        try:
            yield
        finally:
            self.analysis.running.pop()

    def call(self, name: str, arguments: Sequence[Word], given: Input, where: str) -> Output:
        """Run the body of a function that the text defined."""
        analysis = self.analysis
        for running, parallel in analysis.running:
            if running == name:
                if analysis.parallel > parallel:
                    analysis.forbid(f"{name} starts itself again and again (a fork bomb)", where)
                analysis.unknown(f"{name} calls itself", where)
                return Output()
        before = {str(n): analysis.state.variables.get(str(n)) for n in range(10)}
        outer = analysis.state.arguments
        analysis.state.arguments = tuple(arguments)
        for number in range(1, 10):
            value = arguments[number - 1] if number <= len(arguments) else literal("")
            analysis.state.assign(str(number), value)
        with self._running(name), analysis.inside_of(f"{name}()"):
            output = self.statement(analysis.state.functions[name], given)
        analysis.state.variables.update(before)
        analysis.state.arguments = outer
        return output


def either(outputs: Sequence[Output]) -> Output:
    if not outputs:
        return Output()
    kinds = {o.kind for o in outputs}
    origins = frozenset(o for output in outputs for o in output.origins)
    text = "" if all(o.text == "" for o in outputs) else None
    return Output(text, kinds.pop() if len(kinds) == 1 else Kind.ANY, origins)


def _samples(words: Sequence[Word]) -> list[Word | None]:
    """The values of a loop's variable; many of them are taken as one unknown."""
    if len(words) > 16:
        return [Word(None, "many values", kind=Kind.ANY)]
    return [_as_value(word) for word in words]


def _as_value(word: Word) -> Word:
    if word.glob and word.text is not None:
        safe = not word.text.startswith(("/", "~", ".")) and ".." not in word.text
        kind = Kind.NAMES if safe else Kind.ANY
        return Word(None, word.source, kind=kind, head="")
    return word
