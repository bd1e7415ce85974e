"""Collectors bring treasures of several kinds to the deposits that take them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from marlctl.records import Array, State
from marlctl_mpe.batched.task import Task
from marlctl_mpe.batched.world import Body
from marlctl_mpe.scenarios import CollectTreasure

SPREAD = 0.95  # of treasures


class TreasureTask(Task):
    """Collectors come first. Kinds are one-hot; a treasure that was taken is of no kind until it comes back."""

    options = frozenset({"num_collectors", "num_deposits", "num_treasures"})

    def __init__(self, options: CollectTreasure, n: int) -> None:
        c, d, t = options.num_collectors, options.num_deposits, options.num_treasures
        collectors = [Body(f"collector_{i}", accel=1.5, max_speed=1.0) for i in range(c)]
        deposits = [Body(f"deposit_{i}", size=0.075, accel=1.5, max_speed=1.0, mass=2.25) for i in range(d)]
        kept = {"holding": (d, c + d), "kind": (d, t)}
        derived = {"deposit": (d, c + d), "agents": (4 + 2 * d, c + d, c + d - 1), "treasures": (2 + d, c + d, t)}
        treasures = [Body(size=0.025, spread=SPREAD)] * t
        super().__init__([*collectors, *deposits], treasures, n, kept=kept, derived=derived)
        self.n_choices, self._n_collectors, self._n_kinds = t, c, d
        self.world["deposit"][:, c:] = np.eye(d)[..., None]
        self._holding, self._kind = self.world["holding"][:, :c], self.world["kind"]
        a, distance, touch = c + d, self.world.distance, self.world.touch
        self._itself = np.where(np.eye(a, dtype=bool), inf, 0.0)[..., None]
        self._to_treasures, self._touch_treasures = distance[:c, a:], touch[:c, a:]
        self._to_deposits, self._touch_deposits = (x[:c, c:a].swapaxes(0, 1) for x in (distance, touch))
        self._between, self._touch = distance[:c, :c], touch[:c, :c]
        # Treasures come back by a generator of the copy's own: its seed, and how many it has brought back.
        self._seed, self._back = np.zeros((2, n), np.int64)
        self._rngs = [_generator(0)] * n

    # -- an episode --------------------------------------------------------------------------------

    def begin(self, copies: Array, seeds: Sequence[int]) -> None:
        super().begin(copies, seeds)
        self._seed[copies], self._back[copies] = seeds, 0
        for copy, seed in zip(copies, seeds, strict=True):
            # MPE2 copies its generator before it draws, so that treasures come back with the same numbers.
            self._rngs[copy] = _generator(seed)

    def happen(self) -> None:
        """Treasures are taken, delivered, and come back one step after they were taken."""
        there = np.any(self._kind, axis=0)  # (treasures, n)
        taken, delivered = self._take(there), self._deliver()
        self._bonus = 5.0 * (taken + delivered)
        gone = np.argwhere(~there)
        for treasure, copy in gone:
            place, kind = self._bring_back(copy)
            self.world.pos[:, self.n_agents + treasure, copy] = place
            self._kind[kind, treasure, copy] = 1
            self._back[copy] += 1
        if gone.size:
            self.world.measure()

    def reward(self) -> Array:
        c, pos = self._n_collectors, self.world.pos
        held = self._holding.any(0)  # (collectors, n)
        nearest = np.where(self._kind.any(0), self._to_treasures, inf).min(1)
        nearest[nearest == inf] = 0  # where no treasure is left
        matching = (self._holding * self._to_deposits).sum(0)
        overlaps = (self._between < self._touch).sum(1) - 1  # it touches itself
        carrier = np.where(self._holding, self._to_deposits, inf).min(1)  # (deposits, n): the nearest that wants it
        x, y = pos[:, :c].mean(1, keepdims=True) - pos[:, c : self.n_agents]
        self.earned[:c] = -5.0 * overlaps - 0.1 * np.where(held, matching, nearest)
        self.earned[c:] = -0.1 * np.where(carrier < inf, carrier, np.sqrt(x * x + y * y))
        self.earned += self._bonus
        return self.earned

    def measures(self) -> dict[str, Array]:
        holding, carriers = (np.full(self.earned.shape, np.nan) for _ in range(2))
        holding[: self._n_collectors] = self._holding.any(0)
        carriers[self._n_collectors :] = self._holding.sum(1)
        treasures = np.zeros_like(self.earned) + self._kind.sum((0, 1))
        return {"holding": holding, "carriers": carriers, "treasures": treasures}

    def state(self) -> State:
        return {**super().state(), "seed": self._seed.copy(), "back": self._back.copy()}

    def load(self, state: State) -> None:
        super().load(state)
        self._seed[:], self._back[:] = state["seed"], state["back"]
        for copy in range(self.world.n):
            self._rngs[copy] = _generator(int(self._seed[copy]))
            for _ in range(self._back[copy]):
                self._bring_back(copy)

    def _draw(self, rng: np.random.Generator, numbers: Array, choices: Array) -> None:
        """The agents' places, then kind and place of one treasure after the other."""
        rng.random(out=numbers[: 2 * self.n_agents])
        for i, place in enumerate(numbers[2 * self.n_agents :].reshape(-1, 2)):
            choices[i] = rng.integers(self._n_kinds)
            rng.random(out=place)

    def _place(self, copies: Array, numbers: Array, choices: Array) -> None:
        super()._place(copies, numbers, choices)
        self._kind[..., copies] = np.eye(self._n_kinds)[choices].transpose(2, 0, 1)

    def _bring_back(self, copy: int) -> tuple[Array, int]:
        """Where a treasure is found again, and of what kind it is now."""
        rng = self._rngs[copy]
        _, *place = rng.random(3) * (2 * SPREAD) - SPREAD  # the first says whether it comes back, and it always does
        return np.array(place), int(rng.integers(self._n_kinds))

    def _take(self, there: Array) -> Array:
        """How many treasures are taken (n,): each by the first collector that touches it with empty hands."""
        taken = np.zeros(self.world.n)
        empty = ~np.any(self._holding, axis=0)  # (collectors, n)
        touching = (self._to_treasures < self._touch_treasures) & there & empty[:, None]  # (collectors, treasures, n)
        for treasure in np.flatnonzero(touching.any((0, 2))):
            able = touching[:, treasure] & empty
            copies = np.flatnonzero(able.any(0))
            who = able[:, copies].argmax(0)
            self._holding[:, who, copies] = self._kind[:, treasure, copies]
            self._kind[:, treasure, copies] = 0
            empty[who, copies] = False
            taken[copies] += 1
        return taken

    def _deliver(self) -> Array:
        """How many treasures are delivered (n,)."""
        delivered = np.any(self._holding * (self._to_deposits < self._touch_deposits), axis=0)  # (collectors, n)
        self._holding *= ~delivered
        count: Array = np.add.reduce(delivered, axis=0, dtype=np.float64)
        return count

    # -- what agents see ---------------------------------------------------------------------------

    def look(self) -> None:
        """The other agents and the treasures, the nearest first; treasures that are gone are zeros at the end."""
        world, a, copies = self.world, self.n_agents, np.arange(self.world.n)
        order = np.argsort(world.distance[:, :a] + self._itself, axis=1, kind="stable")[:, : a - 1]
        agents = world["agents"]
        agents[:2] = np.take_along_axis(world.delta[:, :, :a], order[None], axis=2)
        agents[2:4] = world.vel[:, order, copies]
        agents[4 : 4 + self._n_kinds] = world["deposit"][:, order, copies]
        agents[4 + self._n_kinds :] = world["holding"][:, order, copies]
        there = self._kind.any(0)
        order = np.argsort(np.where(there, world.distance[:, a:], inf), axis=1, kind="stable")
        treasures = world["treasures"]
        treasures[:2] = np.take_along_axis(world.delta[:, :, a:] * there, order[None], axis=2)
        treasures[2:] = self._kind[:, order, copies]

    def sees(self, agent: int) -> list[Array]:
        hands = [self.own("holding", agent)] if agent < self._n_collectors else []
        return [
            self.own("pos", agent),
            self.own("vel", agent),
            *hands,
            self.own("agents", agent),
            self.own("treasures", agent),
        ]


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))
