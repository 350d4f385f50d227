"""Commands for the operator of a store: its workers, what it needs, and the end of old runs."""
