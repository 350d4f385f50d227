"""Providers: models that can be asked, and the wires they speak."""
