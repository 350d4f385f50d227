"""A desk for each test: an empty current directory, no keys, and its own import path."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.command_line import MODEL_VARIABLES
from tests.unit.cli.pay_desk import make_desks


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the current directory of the test; modules of its files are removed after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in os.environ:
        if name.startswith(MODEL_VARIABLES):
            monkeypatch.delenv(name)
    yield tmp_path
    for name, module in tuple(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def pay_desk(desk: Path) -> Path:
    """Return the current directory of the test, with the targets `pay` and `team`."""
    make_desks()
    return desk
