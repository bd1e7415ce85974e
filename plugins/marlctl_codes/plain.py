"""Codes without arithmetic: every answer is one unit's gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marlctl.records import Array
from marlctl_codes.sizes import FEWER, at_least_units, require


@dataclass(frozen=True)
class Uncoded:
    """One learner for each unit; a round waits for all."""

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        """The identity: more learners would have nothing to do."""
        require("uncoded", n_learners, n_units, lambda n, m: n == m >= 1, "it has one learner for each unit")
        return np.eye(n_units)


@dataclass(frozen=True)
class Replication:
    """Every unit on several learners, evenly; the first of them counts."""

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        """Learners take the units in turn, so that no unit has two copies more than another."""
        require("replication", n_learners, n_units, at_least_units, FEWER)
        return np.eye(n_units)[np.arange(n_learners) % n_units]
