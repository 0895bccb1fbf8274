"""The prefix of a session: a system prompt from parts, and what is said of it. See README.md."""

from lorimer.context.prefix.parts import Prompt, PromptPart, Stability, build, stored

__all__ = ["Prompt", "PromptPart", "Stability", "build", "stored"]
