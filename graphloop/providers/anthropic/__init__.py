"""The wire format of Anthropic's Messages API.

Start with `wire.py`; `encode.py` writes requests, and `decode.py` reads response streams.
"""
