"""Answers from results: templates that code fills, and a check of what the answer says."""

from lorimer.context.answers.check import check
from lorimer.context.answers.evidence import Evidence
from lorimer.context.answers.guide import ANSWER_GUIDE
from lorimer.context.answers.records import AnswerSettings, Checked, Derived, Filled, Flag, Source
from lorimer.context.answers.results import source_of
from lorimer.context.answers.templates import Filler, Recorded, fill

__all__ = [
    "ANSWER_GUIDE", "AnswerSettings", "Checked", "Derived", "Evidence", "Filled", "Filler", "Flag",
    "Recorded", "Source", "check", "fill", "source_of",
]  # fmt: skip
