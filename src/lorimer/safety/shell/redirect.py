"""Redirections as effects: what is read, written, connected to, or given as input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lorimer.safety.shell.analysis import Input, Output
from lorimer.safety.shell.grammar import of
from lorimer.safety.shell.words import Kind, Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from lorimer.safety.shell.walk import Walker

_WRITES = frozenset({">", ">>", ">|", "&>", "&>>"})
_CLOSES = frozenset({"<&-", ">&-"})
_KINDS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})


class Redirections:
    def __init__(self, walker: Walker) -> None:
        self.walker = walker
        self.analysis = walker.analysis
        self.pending: dict[int, Node] = {}

    def statement(self, node: Node, given: Input) -> Output:
        """A statement with redirections after it.

        In the tree they stand around a whole pipeline or list; to bash they belong to its last
        command alone, and are opened in the folder where that one runs.
        """
        body = node.child_by_field_name("body")
        if body is None or body.type not in ("pipeline", "list"):
            return self.apply(node, body, given)
        last = body
        while last.type in ("pipeline", "list") and last.named_children:
            last = last.named_children[-1]
        self.pending[last.id] = node
        return self.walker.statement(body, given)

    def apply(self, node: Node, body: Node | None, given: Input) -> Output:
        """The redirections of `node` around `body`; a here-document may carry more of the line."""
        around = node.child_by_field_name("body")
        extra: list[Word] = []
        prints = True
        tail: list[Node] = []
        for child in node.children:
            if child.type in _KINDS:
                given, keeps = self.take(child, given, extra)
                prints = prints and keeps
                if child.type == "heredoc_redirect":
                    tail.append(child)
            elif child.is_named and child.type != "comment" and child != around:
                self.analysis.unknown(f"not understood: {child.type}", of(child))
        output = Output("")
        if body is not None:
            output = self._body(body, given, extra)
        elif extra:
            self.analysis.unknown("not understood: words without a program", of(node))
        if not prints:
            output = Output("", origins=output.origins)
        for child in tail:
            output = self._rest_of_line(child, output)
        return output

    def _body(self, body: Node, given: Input, extra: Sequence[Word]) -> Output:
        if not extra:
            return self.walker.statement(body, given)
        if body.type == "command":
            self.walker.seen.add(body.id)
            return self.walker._simple(body, body.children, given, extra)
        self.analysis.unknown("not understood: words after a redirection", of(body))
        return self.walker.statement(body, given)

    def _rest_of_line(self, node: Node, output: Output) -> Output:
        """`cat <<EOF | sh` and `cat <<EOF && ls`: the rest hangs below the here-document."""
        from lorimer.safety.shell.walk import as_input

        operator = ""
        for child in node.children:
            if child.type in ("&&", "||"):
                operator = child.type
            elif child.type == "pipeline":
                output = self.walker._pipeline(child, as_input(output), output)
            elif child.is_named and child.type not in _REDIRECT_PARTS:
                self.analysis.state.settle()
                more = self.walker.right_side(child, operator or ";")
                output = Output(None, Kind.ANY, output.origins | more.origins)
            elif not child.is_named and child.type in (";", "&", "|", "|&"):
                self.analysis.unknown("not understood: more after a here-document", of(node))
        return output

    def take(self, node: Node, given: Input, extra: list[Word]) -> tuple[Input, bool]:
        """Judge one redirection: the new input, and whether output still goes on."""
        if node.type == "herestring_redirect":
            value = next((c for c in node.named_children if c.type != "file_descriptor"), None)
            if value is None:
                return given, True
            word = self.walker.expander.single(value)
            text = None if word.text is None else word.text + "\n"
            return Input(True, text, word.kind or Kind.ANY, word.origins), True
        if node.type == "heredoc_redirect":
            return self._heredoc(node, extra)
        return self.judge(node, given, extra)

    def _heredoc(self, node: Node, extra: list[Word]) -> tuple[Input, bool]:
        keeps = True
        given = Input(True)
        start = next((of(c) for c in node.children if c.type == "heredoc_start"), "")
        quoted = bool(re.search(r"[\"'\\]", start))
        for child in node.children:
            if child.type == "heredoc_body":
                if quoted:
                    given = Input(True, of(child))
                    continue
                pieces = self.walker.expander.pieces(child)
                known = all(isinstance(what, str) for what, _ in pieces)
                origins = frozenset(
                    o for w, _ in pieces if not isinstance(w, str) for o in w.origins
                )
                text = "".join(str(w) for w, _ in pieces) if known else None
                given = Input(True, text, Kind.ANY, origins)
            elif child.type in ("file_redirect", "herestring_redirect"):
                given, goes_on = self.take(child, given, extra)
                keeps = keeps and goes_on
        arguments = node.children_by_field_name("argument")
        for argument in arguments:
            extra += self.walker.expander.words(argument)
        return given, keeps

    def judge(
        self, node: Node, given: Input | None = None, extra: list[Word] | None = None
    ) -> tuple[Input, bool]:
        """A redirection to or from a file or a descriptor."""
        given = given or Input()
        descriptor = node.child_by_field_name("descriptor")
        number = of(descriptor) if descriptor is not None else ""
        operator = next((c.type for c in node.children if not c.is_named), "")
        targets = node.children_by_field_name("destination")
        if extra is not None and len(targets) > 1:
            for more in targets[1:]:
                extra += self.walker.expander.words(more)
        elif len(targets) > 1:
            self.analysis.unknown("not understood: words after a redirection", of(node))
        if not targets:
            if operator not in _CLOSES:
                self.analysis.unknown("not understood: a redirection to nothing", of(node))
            return given, True
        if operator in _CLOSES:
            self.analysis.unknown("not understood: words after a redirection", of(node))
        words = self.walker.expander.words(targets[0])
        if len(words) != 1:
            self.analysis.unknown("a redirection to more than one file", of(node))
        word = words[0] if words else Word(None, of(node), kind=Kind.ANY)
        duplicates = operator in ("<&", ">&")
        if duplicates and word.text is not None and re.fullmatch(r"\d+-?|-", word.text):
            # Where a descriptor leads is not followed: it may be the pipe to the next command.
            return given, True
        if duplicates and word.kind is Kind.NUMBER and word.known.isdigit():
            return given, True
        if operator == "<" and word.kind is Kind.PIPE:
            return Input(True, None, Kind.ANY, word.origins), True
        if operator in ("<", "<&"):
            self.analysis.read(word, of(node))
            if number in ("", "0"):
                return Input(True, None, Kind.ANY, word.origins), True
            return given, True
        if operator in _WRITES or operator == ">&":
            self.analysis.write(word, of(node))
            away = word.text is not None and (
                word.text == "/dev/null" or not re.search(r"^/*(dev|proc)\b|\.\.", word.text)
            )
            return given, number not in ("", "1", "&") or not away
        self.analysis.unknown(f"not understood: {operator}", of(node))
        return given, True


_REDIRECT_PARTS = frozenset(
    {"heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor", "comment", "pipeline",
     "file_redirect", "herestring_redirect", "word", "string", "raw_string", "concatenation",
     "simple_expansion", "expansion", "command_substitution", "number", "process_substitution",
     "ansi_c_string", "arithmetic_expansion", "brace_expression"}
)  # fmt: skip
