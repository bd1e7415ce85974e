"""Games between policies of several runs: ours, the plain loop's, and each other's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from marlctl.config import read_file, resolve
from marlctl.contracts import BatchedEnv, Policy
from marlctl.opening import make_env
from marlctl.policies import Cast, load_saved
from marlctl.records import Acts, Array, EnvSpec, Mode, Step
from marlctl.rollout import Player
from marlctl.rundir import RunFolder
from marlctl.seeding import episode_seed
from marlctl.storage.files import write_whole
from reference.arrays import read_arrays
from reference.plan import run_file
from reference.work import Halted

MODES: Mapping[str, Mode] = {"greedy": "greedy", "sampled": "sample"}

# What openai's environment would have paid all agents together, from what MPE2 paid each of them (n, agents).
OLD_REWARDS: Mapping[str, Callable[[Array], Array]] = {
    # The adversary paid the square of its distance.
    "simple_adversary": lambda reward: reward[:, 1:].sum(1) - reward[:, 0] ** 2,
    # Both got the sum of both squares. MPE2 mixes the two distances: 3/4 own, 1/4 the other's.
    "simple_reference": lambda reward: -2 * ((1.5 * reward - 0.5 * reward[:, ::-1]) ** 2).sum(1),
}


class PlainActors:
    """The plain loop's actors, from the arrays it kept."""

    plays: Mode = "greedy"

    def __init__(self, spec: EnvSpec, path: Path) -> None:
        self.spec = spec
        arrays = read_arrays(path)
        self._layers = {
            agent: [(arrays[f"{agent}.{i}.weight"].T, arrays[f"{agent}.{i}.bias"]) for i in (0, 2, 4)]
            for agent in spec.names
        }

    def act(
        self,
        obs: Mapping[str, Array],
        carry: Mapping[str, Array],
        *,
        rng: np.random.Generator,
        mode: Mode,
        mask: Mapping[str, Array] | None = None,
    ) -> Acts:
        rows = len(next(iter(obs.values())))
        joint = self.spec.action.zeros(rows)
        for agent, seen in obs.items():
            logits = self._logits(agent, seen)
            noise = 0 if mode == "greedy" else rng.gumbel(size=logits.shape)
            joint[agent][np.arange(rows), (logits + noise).argmax(1)] = 1
        return Acts(joint)

    def _logits(self, agent: str, seen: Array) -> Array:
        *hidden, (weight, bias) = self._layers[agent]
        for inner, shift in hidden:
            seen = np.maximum(seen @ inner + shift, 0)
        logits: Array = seen @ weight + bias
        return logits


@dataclass(frozen=True)
class Side:
    """Who plays a team: a run of ours, or the plain loop's actors."""

    label: str
    path: Path
    run: str  # the run file whose game it plays

    @property
    def key(self) -> str:
        """Its name, and a mark that changes when it is trained anew."""
        if self.path.suffix == ".npz":
            return f"{self.label}@{hashlib.sha256(self.path.read_bytes()).hexdigest()[:12]}"
        return f"{self.label}@{RunFolder(self.path).created}"

    def policy(self, spec: EnvSpec) -> Policy:
        if self.path.suffix == ".npz":
            return PlainActors(spec, self.path)
        return load_saved(RunFolder(self.path)).learner


class Games:
    """Plays games and remembers what came of them, so that each is played once."""

    def __init__(self, memory: Path, episodes: int, stopping: Callable[[], bool] = lambda: False) -> None:
        self._file, self._episodes, self._stopping = memory, episodes, stopping
        self._known: dict[str, dict[str, float]] = json.loads(memory.read_text()) if memory.is_file() else {}
        self._new = 0
        self._envs: dict[str, BatchedEnv] = {}
        self._policies: dict[str, Policy] = {}

    def meet(self, first: Side, others: Side, mode: str) -> dict[str, float]:
        """What the first team and everybody else earned, and the scenario's measures, means an episode."""
        key = f"{first.run} {first.key} {others.key} {mode} {self._episodes}"
        return self._remembered(key, lambda: self._play(first, others, mode))

    def old_total(self, side: Side, scenario: str, mode: str) -> float:
        """The return of all agents as openai's environment would have counted it."""
        key = f"old {side.run} {side.key} {mode} {self._episodes}"
        return self._remembered(key, lambda: {"total": self._old(side, scenario, mode)})["total"]

    def _remembered(self, key: str, find: Callable[[], dict[str, float]]) -> dict[str, float]:
        if key not in self._known:
            if self._stopping():
                raise Halted
            self._known[key] = find()
            self._new += 1
            if self._new % 50 == 0:
                self.save()
        return self._known[key]

    def save(self) -> None:
        if self._new:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, (json.dumps(self._known, indent=0) + "\n").encode())

    def _env(self, run: str) -> BatchedEnv:
        if run not in self._envs:
            self._policies.clear()  # those of the last scenario are not needed again
            config = resolve(read_file(run_file(run)))
            self._envs = {run: make_env(config, self._episodes, diagnostics=True)}
        return self._envs[run]

    def _policy(self, side: Side, spec: EnvSpec) -> Policy:
        if side.key not in self._policies:
            self._policies[side.key] = side.policy(spec)
        return self._policies[side.key]

    def _play(self, first: Side, others: Side, mode: str) -> dict[str, float]:
        env = self._env(first.run)
        mine = next(iter(env.spec.teams.values()))
        cast = {agent: self._policy(first if agent in mine else others, env.spec) for agent in env.spec.names}
        return measures(env.spec, list(whole_episodes(env, Cast(env.spec, cast, override=MODES[mode]), mode)))

    def _old(self, side: Side, scenario: str, mode: str) -> float:
        env = self._env(side.run)
        steps = whole_episodes(env, self._policy(side, env.spec), mode)
        return float(sum(OLD_REWARDS[scenario](step.reward.array).mean() for step in steps))


def whole_episodes(env: BatchedEnv, policy: Policy, mode: str) -> Iterator[Step]:
    """One episode in every copy, step by step; the games of `marlctl eval`. All episodes are of one length."""
    player = Player(env, policy, seed=0, mode=MODES[mode], seed_of=lambda seed, copy, _: episode_seed(seed, -2, copy))
    while True:
        step = player.step()[0].step
        yield step
        if step.ended.all():
            return


def measures(spec: EnvSpec, steps: Sequence[Step]) -> dict[str, float]:
    """Mean returns by team; touches an episode; % of episodes with a team at the target, at the end and ever."""
    columns = {team: [spec.names.index(agent) for agent in agents] for team, agents in spec.teams.items()}
    returns = np.asarray(sum(step.reward.array for step in steps))  # (n, agents)
    found = {team: float(returns[:, own].sum(1).mean()) for team, own in columns.items()}
    if "touches" in steps[0].diagnostics:
        found["touches"] = float(sum(np.nansum(s.diagnostics["touches"].array, 1).mean() for s in steps))
    if "target_reached" in steps[0].diagnostics:
        reached = np.stack([step.diagnostics["target_reached"].array for step in steps])  # (steps, n, agents)
        for team, own in columns.items():
            covered = np.asarray((reached[:, :, own] > 0).any(2))
            found[f"{team}_success"] = 100 * float(covered[-1].mean())
            found[f"{team}_ever"] = 100 * float(covered.any(0).mean())
    return found
