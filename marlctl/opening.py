"""What a run opens before its first step, and the reasons for which it does not begin at all."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from marlctl.config import Config, match_agents
from marlctl.contracts import BatchedEnv
from marlctl.copies import make_batch
from marlctl.errors import ConfigError
from marlctl.memory import row_bytes
from marlctl.policies import Hosted, load_saved, players
from marlctl.records import EnvSpec, Replay, Rollout
from marlctl.rundir import RunFolder


def rehearse(config: Config) -> tuple[EnvSpec, EnvSpec]:
    """Check all that can be checked before a run folder is made; the whole game, and what the learner sees of it."""
    env, whole = open_env(config, 1)
    env.close()
    check_room(memory_kind(config), env.spec)
    if config.run.init_from:
        their = load_saved(RunFolder(Path(config.run.init_from))).spec
        if their != env.spec:
            raise ConfigError(f"--init-from {config.run.init_from}: its agents are not those of this run")
    return whole, env.spec


def make_env(config: Config, n: int) -> BatchedEnv:
    """n copies of the run's scenario, with every agent in them."""
    run = config.run
    return make_batch(config.env, n, length=run.max_episode_len, num_adversaries=run.num_adversaries)


def open_env(config: Config, n: int) -> tuple[BatchedEnv, EnvSpec]:
    """The environment as the learner meets it, and the spec of the whole game."""
    env = make_env(config, n)
    whole = env.spec
    fixed = match_agents(config.policy, whole.names)
    hosted: BatchedEnv = Hosted(env, players(fixed, whole), seed=config.run.seed) if fixed else env
    why_not = getattr(config.algo, "drives", lambda spec: None)(hosted.spec)
    if why_not:
        raise ConfigError(f"{config.run.algo} cannot play {config.run.scenario}: {why_not}")
    if config.run.best_by != "total" and config.run.best_by not in whole.teams:
        raise ConfigError(f"--best-by {config.run.best_by!r} must be total or a team: {', '.join(whole.teams)}")
    return hosted, whole


def memory_kind(config: Config) -> Replay | Rollout:
    """The memory the algorithm asks for; a ring need not be larger than the budget."""
    kind: Replay | Rollout = config.algo.memory
    budget = config.budget_steps
    if isinstance(kind, Replay) and budget is not None:
        room = budget + config.run.num_envs  # the last step of all copies may go past the budget
        return dataclasses.replace(kind, capacity=max(1, min(kind.capacity, room)))
    return kind


def check_room(kind: Replay | Rollout, spec: EnvSpec) -> None:
    """Refuse a ring that the machine cannot hold before it is filled for hours."""
    needed = row_bytes(spec) * kind.capacity if isinstance(kind, Replay) else 0
    free = free_memory()
    if free is not None and needed > free:
        raise ConfigError(
            f"the replay memory would need {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; "
            "choose a smaller algo.capacity or a shorter budget"
        )


def free_memory() -> int | None:
    """Bytes that can still be had; where the system tells, with those it would take back from its file cache."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError):
        return None
