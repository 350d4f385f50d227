"""Overlays: what the proofs know of graphs, as the views draw it."""
