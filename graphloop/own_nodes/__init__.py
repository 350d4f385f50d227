"""Own nodes: functions, generators and graphs as nodes.

Owns `@node`, the requests that a node may yield, sub-graphs, and graphs made of graphs.
Refuses, at definition, a function whose annotations do not tell its outcomes.
Start with `node_decorator.py`; `compose.py` has router, parallel, retry and the like.
"""
