"""Who computes the gradients of a round. For now one process does; workers come behind the same door."""

from __future__ import annotations

from marlctl.contracts import Learner
from marlctl.records import Batch, Gradient


class Serial:
    """This process, every unit in one call."""

    def gradients(self, learner: Learner, batch: Batch, round: int) -> dict[str, Gradient]:
        return learner.gradients(learner.units, batch, round)
