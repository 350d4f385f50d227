"""Packages that load a public name when it is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["front_door"]


def front_door(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which loads a name from its home on first use.

    Importing then costs what is used. The homes stand twice in such a package, because type
    checkers follow import statements only; a test holds the two against each other.
    """

    def load(name: str) -> object:
        for home, names in homes.items():
            if name in names:
                value: object = getattr(import_module(home, package), name)
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
