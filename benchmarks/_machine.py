"""Where a benchmark ran, and how much memory a process took. Imports nothing heavy: cold starts are timed with it."""

import datetime
import os
import platform
import resource
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def cores() -> int:
    """Cores this process may use, which in a container can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(packages: Sequence[str]) -> str:
    """Date, processor, memory, load, and the versions that a time depends on, as a sentence for RESULTS.md."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{package} {found}" for package in packages if (found := installed(package)))
    return (
        f"{datetime.date.today().isoformat()}: {cores()} cores of {processor()}, {memory:.0f} GiB, load "
        f"{os.getloadavg()[0]:.1f} at the start, {platform.system()}, Python {platform.python_version()}, {versions}."
    )


def processor() -> str:
    """Name of the processor; platform.processor() is empty on most Linux systems."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def peak_mib() -> float:
    """Most memory this process has held, MiB.

    On Linux not getrusage: its peak is inherited from the process that started this one, and a benchmark's parent holds
    the rows too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        kibibytes = [
            int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(("VmHWM", "VmRSS"))
        ]
        return max(kibibytes) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024
