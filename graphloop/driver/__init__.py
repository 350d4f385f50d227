"""The driver: performs a run's effects, and gives the kernel the events that answer them.

The package has the driver's loop, child runs, cancellation, time limits and the recorder, which
journals events before their effects start. The kernel makes all decisions about a run. The driver
knows stores and models only by their protocols.
Start with the loop in `driver.py`.
"""

from .cancellation import cancelled_inside
from .children import child_unwanted
from .driver import AsyncDriver, DriverState
from .models import unseen_costs
from .observers import Observer, Observers, Resting, Surrounding, observers_of
from .pending import (
    Pending,
    ask_key,
    bad_answer,
    bad_edit,
    capability_of,
    pending_of,
    question_of,
    unfit,
)
from .performer import failed
from .ports import (
    Approver,
    Callback,
    ChildRun,
    ChildStep,
    LeftOpen,
    Ports,
    Price,
    Resumption,
    Seen,
    Settler,
    Shown,
)
from .recorder import RELEASED_AS
from .run_log import RunLog, logged

__all__ = [
    "RELEASED_AS",
    "Approver",
    "AsyncDriver",
    "Callback",
    "ChildRun",
    "ChildStep",
    "DriverState",
    "LeftOpen",
    "Observer",
    "Observers",
    "Pending",
    "Ports",
    "Price",
    "Resting",
    "Resumption",
    "RunLog",
    "Seen",
    "Settler",
    "Shown",
    "Surrounding",
    "ask_key",
    "bad_answer",
    "bad_edit",
    "cancelled_inside",
    "capability_of",
    "child_unwanted",
    "failed",
    "logged",
    "observers_of",
    "pending_of",
    "question_of",
    "unfit",
    "unseen_costs",
]
