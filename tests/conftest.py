"""Hypothesis profiles: a fixed, moderate search on every push, a large one overnight.

`HYPOTHESIS_PROFILE=nightly` chooses the large one. Neither has a deadline: a time limit on one
example is a test of the machine. The default is derandomised, so that a red test stays red.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("nightly", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
