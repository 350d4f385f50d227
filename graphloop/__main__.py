"""`python -m graphloop`: the command line, where its script is not on the path."""

from __future__ import annotations

from .cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
