"""The machine in a few words: what a number depends on, and nothing that tells whose it is."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("marlctl", "torch", "numpy", "mpe2", "pettingzoo", "h5py")
# Such settings change how fast libraries compute.
SETTINGS = ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def describe() -> dict[str, Any]:
    """Processor, cores, memory, versions."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: metadata.version(name) for name in PACKAGES},
        "commit": _commit(),
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }


def _commit() -> str:
    """The state of marlctl's source, where that is known."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _cpu() -> str:
    """The processor's name, with family and model, since a virtual one may have a vague name."""
    info: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        info.setdefault(name.strip(), value.strip())
    return f"{info.get('model name', platform.machine())}, family {info.get('cpu family', '?')}"


def load() -> float:
    """How busy the machine is: processes that want to run, on average over the last minute."""
    return os.getloadavg()[0]
