"""The wire format of OpenAI's Responses API and of compatible servers.

Start with `wire.py`; `encode.py` writes requests, and `decode.py` reads response streams.
"""
