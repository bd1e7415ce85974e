"""Playing a trained policy and judging it: returns and the scenario's own diagnostics, with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from marlctl.config import Config, match_agents
from marlctl.contracts import BatchedEnv, Policy
from marlctl.errors import ConfigError, StorageError
from marlctl.opening import make_env
from marlctl.policies import Cast, load_saved, players
from marlctl.records import Array, EnvSpec, Mode, Step
from marlctl.rollout import Player
from marlctl.rundir import RunFolder
from marlctl.scoring import Task, task_of
from marlctl.seeding import episode_seed, stream
from marlctl.storage.files import write_whole
from marlctl.storage.hdf5 import pack

COPIES = 16  # copies of the environment an evaluation plays in
PATIENCE = 10_000  # steps after which an episode that does not end counts as it stands


@dataclass(frozen=True)
class Scores:
    """What episodes of play came to."""

    spec: EnvSpec
    returns: Array  # (episodes, agents)
    lengths: Array  # (episodes,)
    diagnostics: Mapping[str, Mapping[str, Array]]  # name to "per_step", "per_episode", "final": (episodes, agents)
    task: Task | None = None  # how the scenario judges them, where it does

    @property
    def total(self) -> float:
        return float(self.returns.sum(1).mean())

    @cached_property
    def judged(self) -> Array:
        """What each episode is judged by, (episodes,): the scenario's own score, or the total return."""
        return self.task.judge(self.returns) if self.task else self.returns.sum(1)

    @property
    def score(self) -> float | None:
        """The mean of the scenario's own score, where it has one."""
        return float(self.judged.mean()) if self.task and self.task.own_score else None

    def of(self, who: str) -> float:
        """The mean score, the mean return of `total`, or that of a team."""
        if who == "score" and self.score is not None:
            return self.score
        if who == "total":
            return self.total
        columns = [self.spec.names.index(agent) for agent in self.spec.teams[who]]
        return float(self.returns[:, columns].sum(1).mean())

    def summary(self, seed: int = 0) -> dict[str, Any]:
        """Means and 95 % bootstrap intervals, in all, by team and by agent."""
        names = self.spec.names
        teams = {team: [names.index(a) for a in agents] for team, agents in self.spec.teams.items()}
        result: dict[str, Any] = {
            "total": interval(self.returns.sum(1), seed),
            "teams": {team: interval(self.returns[:, columns].sum(1), seed) for team, columns in teams.items()},
            "agents": {name: interval(self.returns[:, i], seed) for i, name in enumerate(names)},
            "episodes": len(self.returns),
            "length": float(self.lengths.mean()),
            **self._verdict(seed),
        }
        if self.diagnostics:
            result["diagnostics"] = {
                name: {
                    agent: {how: float(np.nanmean(values[:, i])) for how, values in measures.items()}
                    for i, agent in enumerate(names)
                    if not np.isnan(measures["final"][:, i]).all()
                }
                for name, measures in self.diagnostics.items()
            }
        return result

    def _verdict(self, seed: int) -> dict[str, Any]:
        """The score, and whether the task is solved: null where too few episodes were played to tell."""
        if self.task is None:
            return {}
        found: dict[str, Any] = {"score": interval(self.judged, seed)} if self.task.own_score else {}
        at, over = self.task.solved_at, self.task.solved_over
        if at is not None:
            solved = bool(self.judged.mean() >= at) if len(self.judged) >= over else None
            found |= {"solved": solved, "solved_at": at, "solved_over": over}
        return found


def interval(values: Array, seed: int = 0, draws: int = 2000) -> dict[str, Any]:
    """The mean and its 95 % bootstrap interval."""
    rng = stream(seed, "bootstrap")
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(draws)]
    low, high = np.percentile(means, [2.5, 97.5])
    return {"mean": float(values.mean()), "ci95": [float(low), float(high)]}


class Interrupted(Exception):
    """Somebody wished to stop while games were played."""


def play(
    env: BatchedEnv,
    policy: Policy,
    *,
    seed: int,
    mode: Mode,
    episodes: int | None = None,
    steps: int = 0,
    stop: Callable[[], bool] = lambda: False,
) -> Scores:
    """Play so many episodes, or episodes until `steps` steps are played; episode i is the same game for any n."""
    player = Player(env, policy, seed=seed, mode=mode, seed_of=lambda s, copy, k: episode_seed(s, -2, k * env.n + copy))
    found: dict[int, _Episode] = {}  # finished, but not the next to count
    counted: list[_Episode] = []
    steps_counted = 0

    def enough() -> bool:
        return steps_counted >= steps if episodes is None else len(counted) >= episodes

    open_ = [_Episode(len(env.spec.names)) for _ in range(env.n)]
    played = np.zeros(env.n, np.int64)  # episodes each copy has finished
    while not enough():
        if stop():
            raise Interrupted
        step, ended = player.step()
        _measure(open_, step.step)
        for copy, returns, length in zip(ended.copies, ended.returns, ended.lengths, strict=True):
            episode = open_[copy]
            episode.returns, episode.length = returns, int(length)
            found[int(played[copy]) * env.n + int(copy)] = episode
            open_[copy] = _Episode(len(env.spec.names))
            played[copy] += 1
        tired = player.lengths.max() >= PATIENCE
        if tired:
            found |= _unfinished(open_, player)
        while not enough() and len(counted) in found:
            counted.append(found.pop(len(counted)))
            steps_counted += counted[-1].length
        if tired:
            break
    return _scores(env.spec, counted)


def _unfinished(open_: list[_Episode], player: Player) -> dict[int, _Episode]:
    """The open episodes as they stand, by their number, when waiting for their end would have none."""
    for episode, returns, length in zip(open_, player.returns, player.lengths, strict=True):
        episode.returns, episode.length = returns.copy(), int(length)
    numbers = player.episode * len(open_) + np.arange(len(open_))
    return {int(number): episode for number, episode in zip(numbers, open_, strict=True) if episode.length}


def _measure(open_: list[_Episode], step: Step) -> None:
    if step.diagnostics:
        for copy, episode in enumerate(open_):
            episode.add({name: joint.array[copy] for name, joint in step.diagnostics.items()})


class _Episode:
    def __init__(self, n_agents: int) -> None:
        self.returns: Array = np.zeros(n_agents)
        self.length = 0
        self.sums: dict[str, Array] = {}
        self.last: dict[str, Array] = {}

    def add(self, diagnostics: Mapping[str, Array]) -> None:
        """Agents that have left are NaN; what they had counts on."""
        for name, values in diagnostics.items():
            there, nothing = ~np.isnan(values), np.full(len(values), np.nan)
            self.sums[name] = np.where(
                there, values + np.nan_to_num(self.sums.get(name, 0)), self.sums.get(name, nothing)
            )
            self.last[name] = np.where(there, values, self.last.get(name, nothing))


def _scores(spec: EnvSpec, episodes: list[_Episode]) -> Scores:
    lengths = np.array([e.length for e in episodes])
    diagnostics = {}
    nothing = np.full(len(spec.names), np.nan)
    for name in dict.fromkeys(name for e in episodes for name in e.sums):
        sums = np.stack([e.sums.get(name, nothing) for e in episodes])
        final = np.stack([e.last.get(name, nothing) for e in episodes])
        diagnostics[name] = {"per_step": sums / lengths[:, None], "per_episode": sums, "final": final}
    return Scores(spec, np.stack([e.returns for e in episodes]), lengths, diagnostics)


def cast_of(
    config: Config,
    folder: RunFolder,
    spec: EnvSpec,
    learner: Policy,
    mode: Mode | None = None,
    guests: Mapping[str, Policy] | None = None,
) -> Cast:
    """Everybody in the game: agents that did not learn play as they did in training, unless guests play them."""
    fixed = {**players(match_agents(config.policy, spec.names), spec, folder), **(guests or {})}
    return Cast(spec, {name: fixed.get(name, learner) for name in spec.names}, override=mode)


def evaluate(  # noqa: PLR0913 (each is a flag of `marlctl eval`)
    folder: RunFolder,
    *,
    episodes: int | None = 100,
    steps: int = 0,
    which: str = "last",
    seed: int = 0,
    mode: Mode | None = None,
    diagnostics: bool = False,
    agents: Mapping[str, str] | None = None,
) -> Scores:
    """Score a run's policy over fresh episodes; `agents` are patterns of agents that other runs play."""
    if (steps if episodes is None else episodes) < 1:
        raise ConfigError("an evaluation plays at least 1 episode")
    config = folder.config()
    saved = load_saved(folder, which)
    n = min(COPIES, episodes or COPIES)
    env = make_env(config, n, diagnostics=diagnostics)
    try:
        guests = players(match_agents(agents or {}, env.spec.names), env.spec, which=which)
        cast = cast_of(config, folder, env.spec, saved.learner, mode, guests)
        scores = play(env, cast, seed=seed, mode=mode or saved.learner.plays, episodes=episodes, steps=steps)
        return replace(scores, task=task_of(config.env, len(env.spec.names)))
    finally:
        env.close()


def save_scores(scores: Scores, summary: Mapping[str, Any], folder: Path, which: str) -> list[Path]:
    """Keep every episode's numbers as HDF5 and the summary as JSON."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror}") from error
    tree: dict[str, Any] = {"returns": scores.returns, "lengths": scores.lengths, "diagnostics": scores.diagnostics}
    if scores.score is not None:
        tree["scores"] = scores.judged
    files = {"h5": pack(tree), "json": (json.dumps(summary, indent=1) + "\n").encode()}
    paths = []
    for ending, data in files.items():
        paths.append(folder / f"benchmark-{which}.{ending}")
        write_whole(paths[-1], data)
    return paths
