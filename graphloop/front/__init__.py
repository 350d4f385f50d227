"""The front door: agents, graphs, streams and results as users hold them."""
