"""How many cores this process may use."""

import os


def cores() -> int:
    """Cores that the system lets this process have."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
