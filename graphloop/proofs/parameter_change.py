"""ParameterChange: one parameter that differs, in words, and whether that is stricter."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, cast

__all__ = ["Effect", "ParameterChange", "in_words", "limited", "ordered", "unknown"]

Effect: TypeAlias = Literal["weaker", "changed", "stronger"]

WORDS_MAX: Final = 60


class ParameterChange(NamedTuple):
    """A parameter that differs: its name, both sides in words, and what that means."""

    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    effect: Effect
    comparable: bool = False

    def said(self, who: str) -> str:
        """Return what differs about `who`, as a sentence."""
        before, after = (", ".join(side) or "none" for side in (self.before, self.after))
        sides = f"{before} -> {after}"
        if self.comparable:
            return f"{self.name} of {who}: {sides}"
        return f"{self.name} of {who}: {sides}, which nobody can compare"


def limited(name: str, was: float | None, now: float | None, *, words: str = "") -> ParameterChange:
    """Return the change of a number that lets more happen the higher it is; None is no limit."""
    more = was is not None and (now is None or now > was)
    effect: Effect = "weaker" if more else "stronger"
    return ParameterChange(
        words or name, (in_words(was),), (in_words(now),), effect, comparable=True
    )


def ordered(path: str, was: object, now: object, *, more: bool) -> ParameterChange:
    """Return a change of which it is known whether it is stricter."""
    effect: Effect = "stronger" if more else "weaker"
    return ParameterChange(path, (in_words(was),), (in_words(now),), effect, comparable=True)


def in_words(value: object) -> str:
    """Return a value in words; what holds others, by its name alone."""
    if value is None:
        return "none"
    if isinstance(value, bool | int | float | str):
        text = repr(value)
        return text if len(text) <= WORDS_MAX else f"{text[:WORDS_MAX]}…"
    if isinstance(value, tuple | list | frozenset | set):
        # isinstance cannot tell what is in it.
        every = [in_words(one) for one in cast("tuple[object, ...]", value)]
        listed = sorted(every) if isinstance(value, frozenset | set) else every
        text = ", ".join(listed)
        return text if len(text) <= WORDS_MAX else f"{text[:WORDS_MAX]}…"
    try:
        named: object = getattr(value, "__qualname__", None) or getattr(value, "name", None)
    except Exception:  # noqa: BLE001 - what stands in a graph may be anybody's.
        named = None
    return named if isinstance(named, str) and named.isprintable() else type(value).__qualname__


def unknown(path: str, was: object, now: object, *, guards: bool) -> ParameterChange:
    """Return a change of which nobody can say what it means: weaker, of what guards something."""
    effect: Effect = "weaker" if guards else "changed"
    before, after = in_words(was), in_words(now)
    if before == after:
        after = f"another {after}"
    return ParameterChange(path, (before,), (after,), effect)
