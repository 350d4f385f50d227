"""One test for many values: what a thousand parametrised tests cost is their number."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps

__all__ = ["for_each"]

Test = Callable[..., None]


def for_each(name: str, values: Iterable[object]) -> Callable[[Test], Test]:
    """Run a test for each value of a parameter, and name the value in a failure.

    In place of `pytest.mark.parametrize`, for a test that needs no fixture anew for each value.
    """
    known = tuple(values)

    def decorated(test: Test) -> Test:
        @wraps(test)
        def whole(**given: object) -> None:
            for value in known:
                try:
                    test(**given, **{name: value})
                except Exception as error:
                    error.add_note(f"{name}: {value!r}")
                    raise

        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name != name]
        vars(whole)["__signature__"] = signature.replace(parameters=others)
        return whole

    return decorated
