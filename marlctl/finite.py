"""Numbers that are not finite end a run at once, before they are applied or saved."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from marlctl.errors import DivergedError
from marlctl.records import Gradient, Metrics

REMEDY = "the last good checkpoint stays; a smaller algo.lr may help"


def check_gradients(gradients: Mapping[str, Gradient]) -> None:
    """Stop before a number that is not finite is applied; say whose it is."""
    for unit, gradient in gradients.items():
        for name, loss in gradient.losses.items():
            if not math.isfinite(loss):
                raise DivergedError(f"{name} of {unit} is {loss}; {REMEDY}")
        if not np.isfinite(gradient.vector).all():
            bad = [name for name, place in gradient.parts.items() if not np.isfinite(gradient.vector[place]).all()]
            raise DivergedError(f"the gradient of {unit} is not finite in {', '.join(bad) or 'its vector'}; {REMEDY}")


def check_metrics(metrics: Metrics) -> None:
    """Stop when a parameter is no longer finite."""
    for name, value in metrics.items():
        if not math.isfinite(value):
            raise DivergedError(f"{name} is {value}; {REMEDY}")
