"""marlctl from Python: what the commands do, as three functions for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marlctl import config as configs
from marlctl import evaluation, rundir, training
from marlctl.config import Config
from marlctl.errors import ConfigError
from marlctl.opening import start
from marlctl.options import unknown
from marlctl.policies import Saved, load_saved
from marlctl.records import Array, EnvSpec, Mode
from marlctl.rundir import RunFolder
from marlctl.wheel import Progress

Run = RunFolder | Path | str


class _Unwatched:
    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None: ...
    def tick(self, progress: Callable[[], Progress]) -> None: ...
    def row(self, row: Mapping[str, Any]) -> None: ...
    def saved(self, step: int) -> None: ...


def train(
    algo: str,
    scenario: str,
    *,
    name: str | None = None,
    save_dir: Path | str = "runs",
    options: Mapping[str, Any] | None = None,
    policy: Mapping[str, Run] | None = None,
    **run: Any,
) -> RunFolder:
    """Train and return the run folder.

    `options` are those of the plugins by owner, {"algo.lr": 1e-3, "env.N": 6}; other keywords are those of the
    run itself (num_episodes, seed, num_envs, eval_every, ...).
    """
    fixed = {agents: who if who == "random" else str(_folder(who).path) for agents, who in (policy or {}).items()}
    values: configs.Values = {"run": {"algo": algo, "scenario": scenario, **run}, "policy": fixed}
    for key, value in (options or {}).items():
        owner, dot, short = key.partition(".")
        if not dot or owner not in ("env", "algo"):
            raise ConfigError(f"option {key!r} must begin with env. or algo.")
        values.setdefault(owner, {})[short] = value
    config = configs.resolve(values)
    config, folder = start(config, Path(save_dir), name)
    training.train(config, folder, _Unwatched())
    return folder


def _folder(run: Run) -> RunFolder:
    return run if isinstance(run, RunFolder) else rundir.find(Path("runs"), str(run))


def evaluate(
    run: Run,
    *,
    episodes: int = 100,
    which: str = "last",
    seed: int = 0,
    mode: Mode | None = None,
    diagnostics: bool = False,
) -> evaluation.Scores:
    """Play a run's policy over fresh episodes and return its scores."""
    return evaluation.evaluate(
        _folder(run), episodes=episodes, which=which, seed=seed, mode=mode, diagnostics=diagnostics
    )


class LoadedPolicy:
    """A trained policy to use anywhere: observations in, actions out, by agent."""

    def __init__(self, saved: Saved) -> None:
        self.spec = saved.spec
        self._learner = saved.learner
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Begin a new episode: forget what was carried from step to step."""
        self._carry: Mapping[str, Array] = {}
        self._rng = np.random.default_rng(seed)

    def act(
        self, obs: Mapping[str, Any], *, mode: Mode | None = None, mask: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Actions as the environment takes them: an index, several indices, or numbers."""
        if not obs:
            return {}
        rows = {agent: self._row(agent, seen) for agent, seen in obs.items()}
        allowed = {agent: np.asarray(m, bool)[None] for agent, m in mask.items()} if mask else None
        acts = self._learner.act(rows, self._carry, rng=self._rng, mode=mode or self._learner.plays, mask=allowed)
        self._carry = acts.carry
        return {agent: self._own_form(agent, acts.action[agent][0]) for agent in obs}

    def _row(self, agent: str, seen: Any) -> Array:
        if agent not in self.spec.names:
            raise ConfigError(unknown(agent, list(self.spec.names), what="agent"))
        try:
            row = np.asarray(seen, np.float32).reshape(1, -1)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"what {agent} sees must be an array of numbers: {error}") from error
        if row.shape[1] != self.spec[agent].obs_size:
            raise ConfigError(f"{agent} sees {self.spec[agent].obs_size} numbers, not {row.shape[1]}")
        return row

    def _own_form(self, agent: str, vector: Array) -> Any:
        action = self.spec[agent].action
        if action.kind == "box":
            return vector
        choices = [int(part.argmax()) for part in np.split(vector, np.cumsum(action.parts)[:-1])]
        numbers = np.array(choices) + (action.first or 0)
        return int(numbers[0]) if len(numbers) == 1 else numbers


def load_policy(run: Run, which: str = "last") -> LoadedPolicy:
    """The policy of a run: its `last`, its `best`, or the one saved at a step."""
    return LoadedPolicy(load_saved(_folder(run), which))
