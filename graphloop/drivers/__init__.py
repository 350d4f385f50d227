"""Drivers: what performs effects. One asynchronous, one wrapper, one simulation."""
