"""Lazy loading: public names and notebook displays, and the place in a caller's program."""

import sys
import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, cast

__all__ = ["called_from", "front_door", "notebook_display"]

PASSED: Final = (__file__.removesuffix("lazy.py"), str(typing.__file__))
"""Path prefixes of files that `called_from` skips: this package, and the `typing` module.

In `Graph[None](…)`, `typing` is the code that calls the constructor.
"""


def front_door(
    package: str, homes: Mapping[str, tuple[str, ...]], *, needs: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """Return a package's `__getattr__`, which loads a name from its module on first use.

    An import of the package then loads only the modules that are used. The package lists its names
    twice, because type checkers read import statements only; a test compares the two lists.

    Args:
        package: the package's name.
        homes: the modules, each with its public names.
        needs: what to install, by module; an import of the module that fails then says so.
    """

    def load(name: str) -> object:
        for home, names in homes.items():
            if name in names:
                try:
                    value: object = getattr(import_module(home, package), name)
                except ModuleNotFoundError as error:
                    extra = (needs or {}).get(home)
                    if extra is None:
                        raise
                    raise ModuleNotFoundError(
                        f"{package}.{name} needs {error.name}, which is not installed. "
                        f"Fix: pip install {extra}",
                        name=error.name,
                    ) from error
                setattr(sys.modules[package], name, value)
                return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


def called_from() -> tuple[str, int] | None:
    """Return the file and line that called this package; None if the code is not in a file."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - what `inspect` uses, too.
    while frame.f_code.co_filename.startswith(PASSED):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file = frame.f_code.co_filename
    return None if file.startswith("<") else (file, frame.f_lineno)


def notebook_display(value: object, **_: object) -> Mapping[str, str]:
    """Return a value as text and as a picture, each by its MIME type; IPython shows the best.

    Classes of lower rooms take this function as their method `_repr_mimebundle_`. It loads the room
    that draws on first use, so none of these classes imports that room.
    """
    bundle = cast("Callable[[object], Mapping[str, str]]", _views("notebook_bundle"))
    return bundle(value)


_views: Final = front_door(__name__, {"graphloop.views": ("notebook_bundle",)})
