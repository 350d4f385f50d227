"""Providers: wires to models, over one transport.

Owns requests, streams, retries, time limits and prices. A wire is an encoder and a decoder.
Refuses a stream that was cut: it is an error, never an answer.
Start with `base.py`; `registry.py` lists the wires.
"""
