"""Alice sends Bob a message under a shared key, and Eve listens."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import SimpleCrypto

EVE, BOB, ALICE = range(3)
SECRET, KEY = range(2)  # both are drawn like goals


class CryptoTask(Task):
    """Nobody moves; Eve and Bob say what they think the secret is."""

    def __init__(self, options: SimpleCrypto, n: int) -> None:
        agents = [Body(name, moves=False, words=4) for name in ("eve_0", "bob_0", "alice_0")]
        super().__init__(agents, [Body()] * 2, n, goals=2, palette=np.eye(2, 4).tolist())
        self._said, self._colour = self.world["said"], self.world["colour"]  # (agents, 4, n), (goals, 4, n)

    def sees(self, agent: int) -> list[Array]:
        said, colour = self.world.rows["said"][ALICE], self.world.rows["colour"]
        return [[said], [colour[KEY], said], [colour[SECRET], colour[KEY]]][agent]

    def reward(self) -> Array:
        error = self._errors()
        error *= self._said[:ALICE].any(1)  # who says nothing is not wrong
        np.negative(error[EVE], out=self.earned[EVE])
        self.earned[BOB:] = error[EVE] - error[BOB]
        return self.earned

    def measures(self) -> dict[str, Array]:
        right, error = (np.full(self.earned.shape, np.nan) for _ in range(2))
        said = self._said[:ALICE]
        right[:ALICE] = said.any(1) & (said.argmax(1) == self._colour[SECRET].argmax(0))
        error[:ALICE] = self._errors()
        return {"reconstructed": right, "squared_error": error}

    def _errors(self) -> Array:
        """How far Eve and Bob are from the secret (2, n)."""
        errors: Array = np.square(self._said[:ALICE] - self._colour[SECRET]).sum(1)
        return errors
