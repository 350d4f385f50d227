"""The mutants of the protocol fit the code that they break."""

from __future__ import annotations

import ast

import pytest

from tests.protocol_mutants import MUTANTS, ProtocolMutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.partition(":")[0])
def test_a_mutant_of_the_protocol_is_a_program(mutant: ProtocolMutant) -> None:
    """A file that does not parse would be noticed by any test."""
    for source in mutant.planted().values():
        ast.parse(source)
