"""Diagrams of graphs, drawn from the table that the engine executes."""
