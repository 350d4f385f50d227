"""A desk for each test: an empty current directory, no keys, and a path to import from."""

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
    """Yield the current directory of the test; what a target adds to the process is undone."""
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
    """Return the current directory of the test, with targets whose runs park."""
    make_desks(desk)
    return desk
