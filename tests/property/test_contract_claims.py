"""The 16 properties of CONTRACT's appendix, and the tests that claim them.

A file claims a property by the first words of its docstring: "Contract 4 and 14: …". The table
below names for each the test to read first; it is checked, so that no name in it can rot.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CLAIMS = {
    1: "test_contract_pairing.py::test_every_call_of_any_run_is_answered_once_and_in_order",
    2: "test_contract_order.py::test_the_order_in_which_tools_end_leaves_no_trace",
    3: "test_contract_order.py::test_any_assignment_of_provider_ids_gives_the_same_paired_results",
    4: "test_contract_resume_points.py::test_a_process_may_die_at_any_moment",
    5: "test_contract_usage.py::test_the_total_is_the_sum_of_every_bill",
    6: "test_contract_streams.py::test_a_buffered_result_is_the_fold_of_its_stream",
    7: "test_wires.py::test_a_stream_cut_before_its_end_is_no_answer",
    8: "test_contract_bounds_all.py::test_no_bound_of_a_run_is_ever_exceeded",
    9: "test_contract_fail_closed.py::test_a_tool_runs_only_if_all_who_have_a_say_said_exactly_yes",
    10: "test_contract_safety.py::test_no_tool_runs_from_a_reply_that_was_refused_cut_or_overfull",
    11: "test_contract_callers.py::test_nothing_of_the_caller_s_is_ever_changed",
    12: "test_contract_compaction.py::test_pruning_keeps_the_frame_and_the_tail_and_only_shrinks",
    13: "test_contract_observers.py::test_a_watcher_of_turns_changes_nothing",
    14: "test_contract_resume_points.py::test_a_run_resumed_at_any_of_its_events_is_the_run",
    15: "test_contract_options.py::test_an_option_takes_effect_or_complains",
    16: "test_contract_journal.py::test_the_same_seed_gives_the_same_bytes",
}
"""Property → file and test."""

CLAIM = re.compile(r"Contract ((?:\d+)(?:(?:, | and )\d+)*)\b")


@cache
def claimed() -> dict[int, set[str]]:
    """Return the files that claim each property."""
    found: dict[int, set[str]] = {}
    for path in HERE.glob("test_*.py"):
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        claim = CLAIM.match(words)
        for number in re.findall(r"\d+", claim.group(1)) if claim else ():
            found.setdefault(int(number), set()).add(path.name)
    return found


def test_each_of_the_16_properties_is_claimed() -> None:
    """A promise without a test is a wish."""
    assert set(range(1, 17)) == claimed().keys()


@pytest.mark.parametrize("number", CLAIMS)
def test_the_table_names_tests_that_are_there(number: int) -> None:
    """And in files that claim what the table says."""
    file, _, name = CLAIMS[number].partition("::")
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))

    assert file in claimed()[number]
    assert name in {
        one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
