"""Numbers that are not finite end a run at once, before they are applied or saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from marlctl.errors import DivergedError, PluginError
from marlctl.records import Array, Gradient, Joint, Metrics, State

REMEDY = "the last good checkpoint stays; a smaller learning rate may help"


def check_joint(what: str, joint: Joint) -> None:
    """Stop where an agent's numbers are not finite; say whose they are."""
    if not np.isfinite(joint.array).all():
        agent = next(agent for agent, part in joint.items() if not np.isfinite(part).all())
        raise DivergedError(f"{what} of {agent} is not finite")


def check_gradients(gradients: Mapping[str, Gradient]) -> None:
    """Stop before a number that is not finite is applied; say whose it is."""
    for unit, gradient in gradients.items():
        if not isinstance(gradient, Gradient):
            raise PluginError(f"`gradients` must return a Gradient for each unit, not {type(gradient).__name__}")
        for name, loss in gradient.losses.items():
            if not math.isfinite(loss):
                raise DivergedError(f"{name} of {unit} is {loss}; {REMEDY}")
        if not np.isfinite(gradient.vector).all():
            bad = [name for name, place in gradient.parts.items() if not np.isfinite(gradient.vector[place]).all()]
            raise DivergedError(f"the gradient of {unit} is not finite in {', '.join(bad) or 'its vector'}; {REMEDY}")


def check_metrics(metrics: Metrics, weights: Callable[[], State]) -> None:
    """Stop when a parameter is no longer finite; say which."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            bad = [tensor for tensor, array in _arrays(weights()) if not np.isfinite(array).all()]
            where = f" ({', '.join(bad)} hold what is not finite)" if bad else ""
            raise DivergedError(f"{name} is {value}{where}; {REMEDY}")


def _arrays(state: State, prefix: str = "") -> Iterator[tuple[str, Array]]:
    for name, value in state.items():
        if isinstance(value, Mapping):
            yield from _arrays(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
