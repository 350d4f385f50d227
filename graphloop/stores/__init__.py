"""Stores: where journals are kept."""
