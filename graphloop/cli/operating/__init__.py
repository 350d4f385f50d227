"""Commands for the operator of a store: what it needs, and the end of old runs."""
