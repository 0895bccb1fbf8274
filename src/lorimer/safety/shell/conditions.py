"""`[ … ]`, `[[ … ]]` and `test`: comparisons of numbers and `-v` evaluate their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lorimer.safety.shell.grammar import of
from lorimer.safety.shell.words import Kind, Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from lorimer.safety.shell.walk import Walker

_ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NAMES = frozenset({"-v", "-R"})
_OPERATORS = _ARITHMETIC | _NAMES


class TestExpressions:
    __test__ = False

    def __init__(self, walker: Walker) -> None:
        self.walker = walker

    def judge(self, node: Node) -> None:
        """A `test_command` node."""
        double = node.children[0].type == "[["
        if node.children[0].type == "((":
            self.walker.arithmetic_statement(node)
            return
        words: list[Word | str] = []
        for child in node.children[1:-1]:
            self._collect(child, words, double)
        self.words(words, of(node), double)

    def words_of(self, words: Sequence[Word], where: str) -> None:
        """The arguments of `test` and `[`."""
        self.words(
            [w.text if w.text is not None and w.text in _OPERATORS else w for w in words],
            where,
            False,
        )

    def _collect(self, node: Node, words: list[Word | str], double: bool) -> None:
        kind = node.type
        if kind in ("unary_expression", "binary_expression", "parenthesized_expression"):
            for child in node.children:
                self._collect(child, words, double)
        elif kind == "test_operator" or not node.is_named:
            words.append(of(node))
        elif kind != "comment":
            if double:
                words.append(self.walker.expander.single(node))
            else:
                words.extend(self.walker.expander.words(node))

    def words(self, words: Sequence[Word | str], where: str, double: bool) -> None:
        """Operators and operands in order."""
        analysis = self.walker.analysis
        texts = [w if isinstance(w, str) else w.text for w in words]
        for place, word in enumerate(words):
            before = texts[place - 1] if place else None
            after = texts[place + 1] if place + 1 < len(texts) else None
            if isinstance(word, str):
                continue
            if before in _NAMES:
                if word.text is None:
                    analysis.unknown("which variable is tested is not known", where)
                else:
                    self.walker.expander.text_operand(_subscript(word.text), where)
            elif double and (before in _ARITHMETIC or after in _ARITHMETIC):
                if word.text is None and word.kind is not Kind.NUMBER:
                    analysis.unknown(f"{word.source} is evaluated as an expression", where)
                elif word.text is not None:
                    self.walker.expander._operand(word.text, where)
            elif not double and word.many and word.kind is not Kind.NUMBER:
                analysis.unknown(f"{word.source} may become an operator of the test", where)


def _subscript(text: str) -> str:
    """Only a subscript is evaluated: a plain name says nothing."""
    return text if "[" in text else "0"
