"""How large a test is: small on every push, large overnight."""

from __future__ import annotations

import os

__all__ = ["NIGHTLY", "PROFILE", "sized"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
NIGHTLY = PROFILE == "nightly"


def sized(ci: int, nightly: int = 5_000) -> int:
    """Return how many examples a test gets that is dearer than most."""
    return nightly if NIGHTLY else ci
