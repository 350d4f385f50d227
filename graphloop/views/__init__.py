"""Views: pictures and texts of graphs and runs.

Owns every drawing; each is made from the table that runs, never by hand.
It changes nothing, and no other room needs it to run.
Start with `picture.py`; `render.py` makes files of it.
"""
