"""Models that judge calls beside the agent: the sidecar and the reviewer."""

from lorimer.safety.review.families import families_of
from lorimer.safety.review.reviewer import ModelReviewer
from lorimer.safety.review.sidecar import ModelSidecar

__all__ = ["ModelReviewer", "ModelSidecar", "families_of"]
