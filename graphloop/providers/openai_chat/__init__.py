"""The wire of OpenAI chat completions, and of all that speak it.

Start with `wire.py`; requests are written in `encode.py`, streams are read in `decode.py`.
"""
