"""One command for multi-agent reinforcement learning, and the library behind it.

    >>> run = marlctl.train("maddpg", "simple_tag", num_episodes=2000)
    >>> marlctl.evaluate(run).total
    >>> marlctl.load_policy(run).act({"agent_0": obs})

What a plugin author needs is here as well: `option` and the contracts and records.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marlctl._version import __version__

if TYPE_CHECKING:
    from marlctl.contracts import Algorithm, BatchedEnv, CodingScheme, Environment, Learner
    from marlctl.errors import MarlctlError
    from marlctl.library import evaluate, load_policy, train
    from marlctl.options import option
    from marlctl.records import Acts, Batch, EnvSpec, Gradient, Joint, Replay, Rollout, Step

__all__ = [
    "Acts",
    "Algorithm",
    "Batch",
    "BatchedEnv",
    "CodingScheme",
    "EnvSpec",
    "Environment",
    "Gradient",
    "Joint",
    "Learner",
    "MarlctlError",
    "Replay",
    "Rollout",
    "Step",
    "__version__",
    "evaluate",
    "load_policy",
    "option",
    "train",
]

_HOMES = {
    "contracts": ("Algorithm", "BatchedEnv", "CodingScheme", "Environment", "Learner"),
    "errors": ("MarlctlError",),
    "library": ("evaluate", "load_policy", "train"),
    "options": ("option",),
    "records": ("Acts", "Batch", "EnvSpec", "Gradient", "Joint", "Replay", "Rollout", "Step"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts quickly."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"marlctl.{home}"), name)
    raise AttributeError(f"module 'marlctl' has no attribute {name!r}")


def __dir__() -> list[str]:
    """With the public names that nobody has used yet."""
    return sorted({*globals(), *__all__})
