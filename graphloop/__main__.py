"""`python -m graphloop` runs the command line; the installed script is not needed."""

from __future__ import annotations

from .cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
