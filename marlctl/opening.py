"""What a run opens before its first step, and the reasons for which it does not begin at all."""

from __future__ import annotations

import dataclasses
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from marlctl import options
from marlctl.config import Config, match_agents
from marlctl.contracts import Algorithm, BatchedEnv, Learner, has_score
from marlctl.copies import make_batch
from marlctl.episodes import guarded
from marlctl.errors import ConfigError, MarlctlError, PluginError
from marlctl.memory import row_bytes
from marlctl.plugins import Kind, algorithm, installed, owner
from marlctl.policies import Hosted, adopt, load_saved, players
from marlctl.records import EnvSpec, Replay, Rollout
from marlctl.rundir import RunFolder, create, is_run
from marlctl.scoring import task_of

ARRAYS = 4  # rows' worth of memory that a copy takes about: float64 while it is stepped, and what was seen before


def start(
    config: Config, save_dir: Path, name: str | None, *, force: bool = False, command: str = ""
) -> tuple[Config, RunFolder]:
    """Make the folder of a new run, once everything about it has been checked."""
    with blaming(config):
        rehearse(config)
    folder = create(save_dir, config, name, force=force, command=command)
    if set(config.policy.values()) - {"random"}:
        config = dataclasses.replace(config, policy=adopt(config.policy, folder))
        folder.write(config)
    return config, folder


def rehearse(config: Config) -> tuple[EnvSpec, EnvSpec]:
    """Check all that can be checked without a folder; the whole game, and what the learner sees of it."""
    env, whole = open_env(config, 1)
    env.close()
    check_room(memory_kind(config), env.spec, config.run.num_envs)
    learner = build(config, env.spec)
    if config.run.init_from:
        take_weights(learner, env.spec, config.run.init_from)
    return whole, env.spec


def build(config: Config, spec: EnvSpec) -> Learner:
    """The learner, on its device."""
    try:
        learner: Learner = config.algo.build(spec, seed=config.run.seed, device=config.run.device)
    except (RuntimeError, AssertionError) as error:
        if config.run.device == "cpu":
            raise
        what = str(error).partition("\n")[0]
        raise ConfigError(f"--device {config.run.device} cannot be used: {what}") from error
    return learner


def take_weights(learner: Learner, spec: EnvSpec, source: str) -> None:
    """Begin with the weights of another run (`--init-from`)."""
    if not is_run(Path(source)):
        raise ConfigError(f"--init-from {source}: no run folder")
    saved = load_saved(RunFolder(Path(source)))
    if saved.spec != spec:
        raise ConfigError(f"--init-from {source}: its agents are not those of this run")
    try:
        learner.load_weights(saved.learner.weights())
    except (KeyError, ValueError, RuntimeError) as error:
        raise ConfigError(f"--init-from {source}: its networks are not those of this run: {error}") from error


@contextmanager
def blaming(config: Config) -> Iterator[None]:
    """An error in a plugin's own code is the plugin's, and says whose it is."""
    try:
        yield
    except (MarlctlError, MemoryError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as error:
        modules = {frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)}
        for name, plugin in ((config.run.algo, type(config.algo)), (config.run.scenario, type(config.env))):
            package = plugin.__module__.partition(".")[0]
            if package != "marlctl" and any(module.partition(".")[0] == package for module in modules):
                raise PluginError(f"{name!r} of {owner(plugin)} failed: {type(error).__name__}: {error}") from error
        raise


def make_env(config: Config, n: int, *, diagnostics: bool = False) -> BatchedEnv:
    """n copies of the run's scenario, with every agent in them."""
    run = config.run
    length, adversaries = run.max_episode_len, run.num_adversaries
    return make_batch(config.env, n, length=length, num_adversaries=adversaries, diagnostics=diagnostics)


def open_env(config: Config, n: int, folder: RunFolder | None = None) -> tuple[BatchedEnv, EnvSpec]:
    """The environment as the learner meets it, and the spec of the whole game."""
    env = make_env(config, n)
    whole = env.spec
    fixed = match_agents(config.policy, whole.names)
    hosted: BatchedEnv = Hosted(env, players(fixed, whole, folder), seed=config.run.seed) if fixed else env
    why_not = _why_not(config.algo, hosted.spec)
    if why_not:
        able = [name for name in dict.fromkeys(p.name for p in installed(Kind.ALGORITHM)) if _can(name, hosted.spec)]
        could = f"with default options {', '.join(able)} could" if able else "no installed algorithm could"
        raise ConfigError(f"{config.run.algo} cannot play {config.run.scenario}: {why_not}; {could}")
    measures = ("score", "total") if has_score(config.env) else ("total",)
    if config.run.best_by not in (*measures, *whole.teams):
        words = f"{', '.join(measures)} or a team: {', '.join(whole.teams)}"
        raise ConfigError(f"--best-by {config.run.best_by!r} must be {words}")
    task_of(config.env, len(whole.names))  # a score that cannot be used is told before anything is played
    return hosted, whole


def _why_not(algo: Algorithm, spec: EnvSpec) -> str | None:
    drives: Callable[[EnvSpec], str | None] = getattr(algo, "drives", lambda spec: None)
    return drives(spec)


def _can(name: str, spec: EnvSpec) -> bool:
    """Whether an algorithm can drive such agents with its default options; a broken one cannot."""
    try:
        return not guarded(name, "drives", lambda: _why_not(options.build(algorithm(name), {}, owner="algo"), spec))
    except MarlctlError:
        return False


def memory_kind(config: Config) -> Replay | Rollout:
    """The memory the algorithm asks for; a ring need not be larger than the budget."""
    kind: Replay | Rollout = config.algo.memory
    if not isinstance(kind, Replay | Rollout):
        raise PluginError(f"the memory of {config.run.algo!r} must be a Replay or a Rollout, not {kind!r}")
    budget = config.budget_steps
    if isinstance(kind, Replay) and budget is not None:
        return dataclasses.replace(kind, capacity=min(kind.capacity, budget))
    return kind


def check_room(kind: Replay | Rollout, spec: EnvSpec, copies: int) -> None:
    """Refuse what the machine cannot hold before it is filled for hours."""
    ring = isinstance(kind, Replay)
    rows = kind.capacity if isinstance(kind, Replay) else kind.steps * copies
    memory, stepping = row_bytes(spec) * rows, row_bytes(spec) * copies * ARRAYS
    free = free_memory()
    if free is None or memory + stepping <= free:
        return
    if ring and stepping < memory:
        what, needed, instead = "the replay memory", memory, "a smaller capacity or a shorter budget"
    else:
        what, needed, instead = f"{copies:,} copies of the environment", memory + stepping, "fewer (--num-envs)"
    raise ConfigError(f"{what} would need {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; choose {instead}")


def free_memory() -> int | None:
    """Bytes that can still be had, by the machine and by the container we may be in."""
    known = [bytes_ for bytes_ in (_of_machine(), _of_container()) if bytes_ is not None]
    return min(known, default=None)


def _of_container() -> int | None:
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = ((group / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
        return int(limit) - int(used)  # a limit of "max" is none
    except (OSError, ValueError):
        return None


def _of_machine() -> int | None:
    """With what the system would take back from its file cache, where it tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (OSError, ValueError):
        return None
