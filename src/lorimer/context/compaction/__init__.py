"""Keeping the context small without losing what matters: plans, notes, checks. Pure."""

from lorimer.context.compaction.options import STRATEGIES, Compaction, compaction_of

__all__ = ["STRATEGIES", "Compaction", "compaction_of"]
