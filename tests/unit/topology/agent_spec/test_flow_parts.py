"""The parts of a flow while it is read."""

from __future__ import annotations

from graphloop.topology.agent_spec.flow_parts import (
    LEAVE,
    LISTED_MAX,
    By,
    To,
    listed,
    pruned,
    row_data,
)


def test_what_no_way_leads_to_is_left_out() -> None:
    """With its agents: what stands after a refused node would be dead."""
    data = pruned(
        {
            "start": "a",
            "agents": {"x": {}, "y": {}, "z": {}},
            "nodes": {
                "a": {"use": "child", "agent": "x"},
                "b": {"use": "parallel", "branches": [{"agent": "y"}]},
                "c": {"use": "child", "agent": "z"},
            },
            "edges": {"a": {"answered": "b"}, "b": {"else": "END"}, "c": {"else": "a"}},
        }
    )

    assert {
        "start": "a",
        "agents": {"x": {}, "y": {}},
        "nodes": {
            "a": {"use": "child", "agent": "x"},
            "b": {"use": "parallel", "branches": [{"agent": "y"}]},
        },
        "edges": {"a": {"answered": "b"}, "b": {"else": "END"}},
    } == data


def test_a_row_leads_where_its_branches_lead() -> None:
    """To a node of their own, to a branch's target, and else to the end."""
    assert {"a": "n", "b": "m", "c": "END"} == row_data(
        {"a": To("n"), "b": By("go"), "c": LEAVE}, {"go": "m"}
    )
    assert {"final": "m", "resend": "m", "else": "END"} == row_data(
        {"next": By("next")}, {"next": "m"}
    )
    assert {"else": "END"} == row_data({"next": LEAVE}, {})


def test_a_branch_may_have_any_name() -> None:
    """It is never taken for a node's."""
    assert {"a": "confirm", "b": "n"} == row_data(
        {"a": By("=deploy"), "b": By("END")}, {"=deploy": "confirm", "END": "n"}
    )


def test_a_message_lists_some_branches() -> None:
    """Each of many wrong ways would name all of them."""
    names = [f"b{number}" for number in range(LISTED_MAX)]

    assert "none" == listed([])
    assert ", ".join(names) == listed(names)
    assert f"{', '.join(names)}, …" == listed([*names, "c"])
