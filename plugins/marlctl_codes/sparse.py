"""Random codes with zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marlctl.errors import ConfigError
from marlctl.options import option
from marlctl.records import Array
from marlctl_codes.dyadic import dyadic
from marlctl_codes.sizes import FEWER, at_least_units, require

DRAWS = 1000


@dataclass(frozen=True)
class RandomSparse:
    """Normal coefficients, each kept with some probability: nearly MDS, for less work."""

    density: float = option(0.8, "probability that a learner computes a unit", above=0, high=1)

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array:
        """The first draw that decodes when all answer and leaves no learner idle."""
        require("random-sparse", n_learners, n_units, at_least_units, FEWER)
        for _ in range(DRAWS):
            kept = rng.random((n_learners, n_units)) < self.density
            drawn = dyadic(rng.standard_normal((n_learners, n_units)) * kept)
            if kept.any(axis=1).all() and np.linalg.matrix_rank(drawn) == n_units:
                return drawn
        raise ConfigError(
            f"random-sparse cannot spread {n_units} units over {n_learners} learners with density {self.density:g}: "
            f"in {DRAWS} draws some unit was nobody's or some learner had none; the nearest it can: a higher density"
        )
