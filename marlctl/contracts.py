"""What a plugin author writes. Three kinds of plugin, each a frozen dataclass whose fields are its options.

The loop that calls them, without the bookkeeping::

    env = environment.make_batch(n)  # or n copies of environment.make()
    learner = algorithm.build(spec, seed=seed, device=device)
    obs, carry = env.reset(seeds), {}
    while budget:
        acts = learner.act(obs, carry, rng=rng, mode="explore")
        step = env.step(acts.action, next_seeds)
        memory.add(obs, acts, step)
        if memory.due():
            gradients = executor.gradients(learner, memory.batch(), round)
            metrics = learner.apply(gradients)
        obs, carry = step.obs, acts.carry  # rows of ended episodes set to zero
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from marlctl.records import (
    Acts,
    Array,
    Batch,
    EnvSpec,
    Gradient,
    Joint,
    Metrics,
    Mode,
    Replay,
    Rollout,
    State,
    Step,
)

if TYPE_CHECKING:
    import numpy as np
    from pettingzoo import ParallelEnv


@runtime_checkable
class Environment(Protocol):
    """A scenario (group `marlctl.environments`). Opens PettingZoo environments, and nothing else.

    Optional beside `make`:

    - `make_batch(n) -> BatchedEnv | None`: n copies stepped in one call (None: not with these options);
    - `good_copies: int`: how many `train` steps together unless told (without it: 1);
    - `team(agent) -> str`: the agent's team (without it: its name less the number); a team called
      "adversary" is who `--adv-policy` speaks of;
    - `action_parts(env) -> {agent: sizes}`: how a Box action divides, a move and a message say;
    - `with_length(steps) -> Environment`: the same scenario with episodes of that length;
    - `diagnostic() -> Environment` and `diagnose(agent, info) -> {name: number}`: the scenario's own
      measures for `eval --benchmark`;
    - `score(returns) -> Array`: how the task's authors judge an episode, where that is not the sum of all
      returns. The last axis of `returns` is the agents, in spec order: (agents,) gives one number, (episodes,
      agents) one an episode; `returns.max(-1)` is the best agent's;
    - `solved_at: float`: the mean score that counts as solved (of the total return, without `score`), over
      `solved_over: int` episodes (without it: 100).
    """

    def make(self, *, render_mode: str | None = None) -> ParallelEnv[str, Any, Any]: ...


def has_score(environment: Environment) -> bool:
    """Whether the scenario judges episodes by a score of its own; an option of that name is none."""
    return callable(getattr(environment, "score", None))


class BatchedEnv(Protocol):
    """n copies of a scenario. Arrays are (n, ...) with the agents side by side, in spec order."""

    spec: EnvSpec
    n: int

    def reset(self, seeds: Sequence[int]) -> tuple[Joint, Joint | None]:
        """Begin an episode in every copy; what the agents see, and the actions allowed if masked."""

    def step(self, action: Joint, seeds: Sequence[int]) -> Step:
        """One step of every copy; one whose episode ends is reset with its seed in the same call."""

    def state(self) -> State:
        """Everything needed to go on from here."""

    def load(self, state: State) -> tuple[Joint, Joint | None]:
        """Be where `state` was taken; what the agents see there."""

    def close(self) -> None: ...


@runtime_checkable
class Algorithm(Protocol):
    """A way of learning (group `marlctl.algorithms`). Builds learners, and says what memory they need.

    Optional: `drives(spec) -> str | None`, why this algorithm cannot drive such agents; `good_threads: int`, how many
    threads torch gets unless told (without it: 2).
    """

    @property
    def memory(self) -> Replay | Rollout: ...

    def build(self, spec: EnvSpec, *, seed: int, device: str) -> Learner: ...


class Policy(Protocol):
    """Whoever can act: a learner, or a player that does not learn."""

    plays: Mode  # how it is meant to be used once trained: "sample" or "greedy"

    def act(
        self,
        obs: Mapping[str, Array],
        carry: Mapping[str, Array],
        *,
        rng: np.random.Generator,
        mode: Mode,
        mask: Mapping[str, Array] | None = None,
    ) -> Acts:
        """Act for the agents in `obs`, all or some of them."""


class Learner(Policy, Protocol):
    """What an algorithm builds: maths and nothing else.

    `gradients` changes nothing; all gradients of a round read the state before the round. Randomness
    inside it follows from (run seed, round, purpose, agent), never from the process or from who else is asked for.
    """

    units: tuple[str, ...]

    def gradients(self, units: Sequence[str], batch: Batch, round: int) -> dict[str, Gradient]: ...

    def apply(self, gradients: Mapping[str, Gradient]) -> Metrics: ...

    def weights(self) -> State:
        """All that `gradients` reads, and `act` where it does not explore."""

    def load_weights(self, weights: State) -> None: ...

    def state(self) -> State:
        """Everything a checkpoint must hold, as arrays and plain numbers."""

    def load(self, state: State) -> None: ...


@runtime_checkable
class CodingScheme(Protocol):
    """A code over units of learning (group `marlctl.coding_schemes`).

    `matrix` gives (n_learners, n_units) real numbers: a learner computes the units whose coefficient in its row is not
    0, and answers with the sum. With all answers the matrix must have full rank; which fewer are enough is found out
    by rank, so any matrix decodes correctly. It follows from `rng` alone. Where it cannot be built for such numbers,
    raise a ConfigError that names the nearest for which it can. Coefficients of few bits (whole numbers, multiples of
    2**-8) let sums be exact, and so bear larger gradients.

    Optional beside `matrix`:

    - `left_inverse(rows) -> Array | None`: a quicker or better way back than least squares, as an array P (n_units, n)
      with P @ rows = 1 for the n rows that have answered; None where it knows none, and then least squares is tried.
      A wrong one is noticed and not used.
    """

    def matrix(self, n_learners: int, n_units: int, rng: np.random.Generator) -> Array: ...
