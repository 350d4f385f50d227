"""The wire of Anthropic Messages.

Start with `wire.py`; requests are written in `encode.py`, streams are read in `decode.py`.
"""
