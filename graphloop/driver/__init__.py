"""The driver: performs effects, and gives the kernel the events that answer them.

Owns the one loop, children, cancellation, time limits and the recorder, which writes ahead.
It decides nothing about a run, and knows stores and models by their seams only.
Start with the loop in `driver.py`.
"""
