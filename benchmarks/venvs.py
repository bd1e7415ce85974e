"""A virtual environment for each peer, made when it is first needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.records import BenchmarkError

TORCH = "torch==2.13.0"
# agilerl asks for peft without saying so; benchmarl and xuance import pettingzoo.mpe, which 1.24.3 still had.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "agilerl": ("agilerl==2.58.0", "peft", "mpe2==1.1.1", "pettingzoo<1.27", TORCH),
    "benchmarl": ("benchmarl==1.5.2", "torchrl<0.12", "vmas==1.5.2", "pettingzoo[mpe]==1.24.3", TORCH),
    "xuance": ("xuance==1.4.4", "pettingzoo[mpe]==1.24.3", TORCH),
    "jaxmarl": ("jaxmarl==0.2.0", "jax==0.10.2"),
}
TOLD = ("torch", "numpy", "agilerl", "benchmarl", "torchrl", "vmas", "xuance", "jaxmarl", "jax", "mpe2", "pettingzoo")
_VERSIONS = """
import importlib.metadata as m, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def prepare(peer: str, cache: Path) -> Path:
    """The Python of a peer's environment, which is made where it is not there or asks for something else."""
    folder = cache / "venvs" / peer
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(REQUIREMENTS[peer]) + "\n"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    _do([sys.executable, "-m", "venv", str(folder)], peer)
    _do([str(python), "-m", "pip", "install", "--no-input", "--quiet", *REQUIREMENTS[peer]], peer)
    stamp.write_text(wanted, encoding="utf-8")  # last, so that half an installation is not taken for a whole one
    return python


def _do(command: list[str], peer: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchmarkError(f"cannot install {peer}: {type(error).__name__}") from error
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise BenchmarkError(f"cannot install {peer}: {errors[0] if errors else 'pip gave no reason'}")


def versions(python: Path) -> dict[str, str]:
    """What is installed there, of what matters."""
    done = subprocess.run([str(python), "-c", _VERSIONS, *TOLD], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))
