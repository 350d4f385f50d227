"""History: a sequence that only grows, shared between all its versions.

A run is a value, and every step makes a new one; its messages must therefore be a value too, and
adding one must not copy the others. A `History` keeps full blocks of 32 items apart from a short
tail, so `append` copies at most a block, whatever the length, and older versions stay as they are.
(A shared growing list would be faster still, but two branches of one run would race for its end.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar, cast, final, overload

__all__ = ["History"]

T = TypeVar("T")

BLOCK = 32


@final
class History(Sequence[T], Generic[T]):
    """An immutable sequence with O(1) append (amortised) and O(1) access."""

    __slots__ = ("_blocks", "_size", "_tail")

    def __init__(self, items: Iterable[T] = ()) -> None:
        every = tuple(items)
        whole = len(every) // BLOCK * BLOCK
        self._blocks: tuple[tuple[T, ...], ...] = tuple(
            every[start : start + BLOCK] for start in range(0, whole, BLOCK)
        )
        self._tail: tuple[T, ...] = every[whole:]
        self._size = len(every)

    def append(self, *items: T) -> History[T]:
        """Return a history that also holds `items`, in order; this one is unchanged."""
        if not items:
            return self
        blocks, tail = self._blocks, self._tail + items
        while len(tail) >= BLOCK:
            blocks, tail = (*blocks, tail[:BLOCK]), tail[BLOCK:]
        longer: History[T] = object.__new__(type(self))
        longer._blocks = blocks
        longer._tail = tail
        longer._size = self._size + len(items)
        return longer

    def starts_with(self, older: History[T]) -> bool:
        """Whether `older` is the beginning of this history.

        Histories grown from one another share their blocks, and tuples compare shared items by
        identity: this looks at blocks, not at messages.
        """
        size = len(older._blocks)
        if size > len(self._blocks) or self._blocks[:size] != older._blocks:
            return False
        tail = self._tail if size == len(self._blocks) else self._blocks[size]
        return tail[: len(older._tail)] == older._tail

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            start, stop, stride = index.indices(len(self))
            if stride == 1:
                return self._between(start, stop)
            return tuple(self[at] for at in range(start, stop, stride))
        size = self._size
        if -len(self._tail) <= index < 0:
            return self._tail[index]
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            raise IndexError(f"index {index} is outside a history of {size} items")
        block, offset = divmod(at, BLOCK)
        return self._tail[offset] if block == len(self._blocks) else self._blocks[block][offset]

    def _between(self, start: int, stop: int) -> tuple[T, ...]:
        """Return a run of items by looking at their blocks only."""
        first, last = start // BLOCK, (stop + BLOCK - 1) // BLOCK
        spans = (*self._blocks[first:last], self._tail) if last > len(self._blocks) else None
        items = tuple(chain.from_iterable(spans or self._blocks[first:last]))
        return items[start - first * BLOCK : max(start, stop) - first * BLOCK]

    def __iter__(self) -> Iterator[T]:
        for block in self._blocks:
            yield from block
        yield from self._tail

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        other = cast("History[object]", other)  # isinstance cannot tell the item type.
        return self._tail == other._tail and self._blocks == other._blocks

    def __hash__(self) -> int:
        return hash((self._blocks, self._tail))

    def __repr__(self) -> str:
        # Bounded: a run's repr ends up in tracebacks, and asyncio makes one at the end of `run`.
        return f"<History of {len(self)} items>"
