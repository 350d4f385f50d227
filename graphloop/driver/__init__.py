"""The driver: performs a run's effects, and gives the kernel the events that answer them.

The package has the driver's loop, child runs, cancellation, time limits and the recorder, which
journals events before their effects start. The kernel makes all decisions about a run. The driver
knows stores and models only by their protocols.
Start with the loop in `driver.py`.
"""

from ..questions import Pending, pending_of
from .cancellation import cancelled_inside
from .children import NOT_NEEDED, child_abandoned
from .driver import AsyncDriver
from .in_flight import InFlight
from .models import NEEDS_DRIVER, counted_limits, unseen_costs
from .observers import Observer, Observers, Resting, RunLog, Surrounding, logged, observers_of
from .performer import failed
from .ports import (
    Approver,
    Callback,
    ChildRun,
    ChildStep,
    DriverState,
    Elsewhere,
    Fleet,
    GivenAnswer,
    LeftOpen,
    Pace,
    Ports,
    Price,
    Resumption,
    Seen,
    Shown,
)

__all__ = [
    "NEEDS_DRIVER",
    "NOT_NEEDED",
    "Approver",
    "AsyncDriver",
    "Callback",
    "ChildRun",
    "ChildStep",
    "DriverState",
    "Elsewhere",
    "Fleet",
    "GivenAnswer",
    "InFlight",
    "LeftOpen",
    "Observer",
    "Observers",
    "Pace",
    "Pending",
    "Ports",
    "Price",
    "Resting",
    "Resumption",
    "RunLog",
    "Seen",
    "Shown",
    "Surrounding",
    "cancelled_inside",
    "child_abandoned",
    "counted_limits",
    "failed",
    "logged",
    "observers_of",
    "pending_of",
    "unseen_costs",
]
