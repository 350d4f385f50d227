"""Testing your agents and graphs: a scripted model, and simulated runs under a seed."""

from .drivers.sim import Simulation, World, simulate
from .providers.script import ScriptedModel

__all__ = ["ScriptedModel", "Simulation", "World", "simulate"]
