"""The wire format of Google's Gemini API.

Start with `wire.py`; `encode.py` writes requests, and `decode.py` reads response streams.
"""
