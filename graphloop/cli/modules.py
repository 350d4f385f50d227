"""Modules: execute the Python files and modules that a command line names.

An error in the user's code names its file and line, and has no traceback.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from ..errors import ConfigError, GraphloopError, nearest

__all__ = ["EXECUTED", "MODULE", "execute", "exists", "imported", "register", "users_code"]

EXECUTED: Final = "graphloop_target_"
"""The prefix of the module name of an executed file."""
MODULE: Final = re.compile(r"[A-Za-z_][\w.]*")


def register(files: Iterable[str] | None) -> tuple[ModuleType, ...]:
    """Execute each file or module, once, so that it registers its names for topology files."""
    return tuple(map(_load_module, files or ()))


def _load_module(text: str) -> ModuleType:
    if not text.endswith(".py"):
        if MODULE.fullmatch(text):
            return imported(text, f"--with {text}")
        raise ConfigError(
            f"--with: expected a .py file, or a module such as my_package.desk, found {text!r}."
        )
    file = Path(text)
    if not exists(text):
        names = [near.name for near in file.parent.glob("*.py")]
        raise ConfigError(
            f"--with {text}: expected a .py file, found nothing of that name."
            f"{nearest(file.name, names)}"
        )
    return _executed_before(file) or execute(file)


@contextmanager
def users_code(place: str) -> Generator[None]:
    """Convert an error in the user's code to a ConfigError that names its file and line."""
    try:
        yield
    except GraphloopError:
        raise
    except Exception as error:
        if isinstance(error, SyntaxError):
            where = f"{error.filename}, line {error.lineno}"
        else:
            ours = (str(Path(__file__).parent), "<frozen")
            frames = traceback.extract_tb(error.__traceback__)
            theirs = [frame for frame in frames if not frame.filename.startswith(ours)]
            where = f"{theirs[-1].filename}, line {theirs[-1].lineno}" if theirs else place
        raise ConfigError(
            f"{place}: expected Python that loads, found {type(error).__name__}: {error} ({where})"
        ) from error


class _Uncached(SourceFileLoader):
    """Compiles a file without cached bytecode, which may be stale if the file has just changed."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the current content of the file."""
        del fullname
        return self.source_to_code(self.get_data(self.path), self.path)


def execute(file: Path) -> ModuleType:
    """Execute a .py file, and return its module."""
    name = f"{EXECUTED}{file.stem}"
    loader = _Uncached(name, str(file))
    module = module_from_spec(ModuleSpec(name, loader, origin=str(file)))
    module.__file__ = str(file.absolute())
    sys.modules[name] = module  # Python resolves annotations there.
    sys.modules.setdefault(file.stem, module)  # Another file that imports it gets this module.
    sys.path.insert(0, str(file.parent.absolute()))
    with users_code(str(file)):
        loader.exec_module(module)
    return module


def _executed_before(file: Path) -> ModuleType | None:
    """Return the module of a file that was executed already; None if it was not."""
    for name in (f"{EXECUTED}{file.stem}", file.stem):
        module = sys.modules.get(name)
        known = None if module is None else module.__file__
        if known is not None and Path(known).absolute() == file.absolute():
            return module
    return None


def exists(text: str) -> bool:
    """Whether there is a file or directory at the path `text`."""
    try:
        return Path(text).exists()
    except OSError:  # A question may be too long for a file name.
        return False


def imported(name: str, text: str) -> ModuleType:
    """Import a module, also from the current directory; errors quote the user's input `text`."""
    sys.path.insert(0, str(Path.cwd()))
    with users_code(name):
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
            raise ConfigError(
                f"{text}: expected a module {name!r}, found none on the path or in {Path.cwd()}. "
                "Fix: check the name; a question has a space in it."
            ) from error
