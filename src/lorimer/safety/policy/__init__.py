"""Policy: what may run, what is asked, what is refused. `load_policy` is the way in."""

from lorimer.safety.policy.layers import LayeredPolicy, load_policy
from lorimer.safety.policy.modes import MODES, ModePolicy

__all__ = ["MODES", "LayeredPolicy", "ModePolicy", "load_policy"]
