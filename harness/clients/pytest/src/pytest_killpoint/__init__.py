"""killpoint's trials as tests of pytest."""

from .program import Killpoint
from .result import Action, Finding, KillpointError, Run, Trial

__all__ = ["Action", "Finding", "Killpoint", "KillpointError", "Run", "Trial"]
