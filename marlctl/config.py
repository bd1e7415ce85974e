"""From flags and run files to one checked `Config`: everything a run needs, with every value resolved.

Options have owners: `run` (this file), `env` (the scenario) and `algo` (the algorithm); `policy` says who
does not learn. The dataclasses are the schema and the defaults; a run file is the same in TOML.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from marlctl import options, plugins
from marlctl.contracts import has_score
from marlctl.errors import ConfigError
from marlctl.options import option

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Values = dict[str, dict[str, Any]]
OWNERS = ("run", "env", "algo", "policy")
THREADS = 2  # networks of the usual size do not profit from more
# What a continued run may change: none of it alters a number that was or will be computed.
FREE = ("num_episodes", "steps", "save_rate", "keep")


@dataclass(frozen=True)
class Run:
    """What a run is, apart from the options of its scenario and its algorithm."""

    scenario: str = option("", "the scenario to play")
    algo: str = option("", "the algorithm that learns")
    seed: int = option(0, "every random number follows from it", low=0, high=2**63 - 1)
    num_episodes: int | None = option(None, "episodes to train for (60000 unless steps is given)", low=1)
    steps: int | None = option(None, "environment steps to train for, instead of episodes", low=1)
    max_episode_len: int | None = option(None, "steps an episode has at most, instead of the scenario's own", low=1)
    num_envs: int = option(
        0,
        "copies of the environment stepped together; 0 takes 32, or 1 of a scenario without arrays",
        low=0,
        high=65536,
    )
    num_adversaries: int | None = option(None, "how many of the first agents are adversaries", low=0)
    init_from: str | None = option(None, "run whose weights to start from")
    eval_every: int = option(1000, "episodes between evaluations; 0 never evaluates", low=0)
    eval_episodes: int = option(20, "episodes of an evaluation", low=1)
    best_by: str | None = option(
        None, "what decides which policy is best: score, total or a team (score where the scenario has one, else total)"
    )
    log_every: int | None = option(None, "episodes a row of metrics averages (10, and 100 after the first 1000)", low=1)
    save_rate: int = option(1000, "episodes between checkpoints", low=1)
    keep: int = option(2, "newest checkpoints to keep beside the best", low=1)
    save_replay: bool = option(True, "keep the replay buffer in checkpoints, for exact resumption")
    device: str = option("cpu", "torch device to learn on")
    threads: int = option(
        0, "threads torch may use; another number, other rounding; 0 takes what suits the algorithm", low=0, high=1024
    )


@dataclass(frozen=True)
class Config:
    """A run with every name found and every value checked."""

    run: Run
    env: Any  # contracts.Environment
    algo: Any  # contracts.Algorithm
    policy: Mapping[str, str]  # agent pattern to "random" or a run folder

    @property
    def values(self) -> Values:
        """Every resolved value, as a run file has it; what is unset is left out."""
        return {
            "run": _plain(self.run),
            "env": _plain(self.env),
            "algo": _plain(self.algo),
            "policy": dict(self.policy),
        }

    @property
    def digest(self) -> str:
        """Tells runs apart that would compute different numbers."""
        values = self.values
        fixed = {name: value for name, value in values["run"].items() if name not in FREE}
        text = json.dumps({**values, "run": fixed}, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def episode_length(self) -> int | None:
        """Steps of an episode, where that is known."""
        return self.run.max_episode_len or getattr(self.env, "max_cycles", None)

    @property
    def budget_steps(self) -> int | None:
        """Environment steps the run can take at most, where that is known."""
        if self.run.steps:
            return self.run.steps + self.run.num_envs - 1
        length = self.episode_length
        if not (self.run.num_episodes and length):
            return None
        # When the last episode ends, the other copies may be anywhere in theirs.
        return (self.run.num_episodes + self.run.num_envs - 1) * length


def _plain(record: Any) -> dict[str, Any]:
    open_field = getattr(type(record), "open_options", None)
    values: dict[str, Any] = {}
    for f in dataclasses.fields(record):
        value = getattr(record, f.name)
        if f.name == open_field:
            values |= {name: "none" if given is None else given for name, given in value.items()}
        elif f.init and value is None and f.default is not None:
            values[f.name] = "none"  # TOML has no word for it; left out, it would come back as the default
        elif f.init and options.is_plain(value):  # what is not plain can only be the default
            values[f.name] = list(value) if isinstance(value, tuple) else value
    return values


def resolve(values: Values) -> Config:
    """Check every name and value, cheapest first, and fill in what follows from the rest."""
    stray = sorted(set(values) - set(OWNERS) - {"about"})
    if stray:
        raise ConfigError(options.unknown(stray[0], list(OWNERS), what="section"))
    run: Run = options.build(Run, values.get("run", {}), owner="run")
    for name in ("algo", "scenario"):
        if not getattr(run, name):
            raise ConfigError(f"which {name}? add --{name} NAME (`marlctl plugins list` shows them)")
    if run.num_episodes and run.steps:
        raise ConfigError("--num-episodes and --steps are both given; a run has one budget")
    algorithm, environment = plugins.algorithm(run.algo), plugins.environment(run.scenario)
    env = options.build(environment, values.get("env", {}), owner="env")
    algo = options.build(algorithm, values.get("algo", {}), owner="algo")
    policy = {str(pattern): str(source) for pattern, source in values.get("policy", {}).items()}
    if run.num_episodes is None and run.steps is None:
        run = dataclasses.replace(run, num_episodes=60_000)
    good = int(getattr(env, "good_copies", 1))
    copies = run.num_envs or min(good, run.num_episodes or good)
    best_by = run.best_by or ("score" if has_score(env) else "total")
    threads = run.threads or min(int(getattr(algo, "good_threads", THREADS)), _cores())
    run = dataclasses.replace(run, num_envs=copies, threads=threads, best_by=best_by)
    return Config(run, env, algo, policy)


def _cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def continued(saved: Values, given: Values) -> Config:
    """The saved run with what was given anew, which may differ only in what changes no number."""
    before = resolve(saved)
    budget = {"num_episodes", "steps"} & set(given.get("run", {}))
    if len(budget) == 1:
        (kept,) = budget
        (other,) = {"num_episodes", "steps"} - budget
        if getattr(before.run, kept) is None:
            raise ConfigError(f"the run counts its budget in {other}, so it can only go on in {other}")
    after = resolve(merge(saved, given))
    changed = [
        f"{owner}.{name}: the run has {was!r}, you gave {now!r}"
        for owner in OWNERS
        for name in {**before.values[owner], **after.values[owner]}
        if (was := before.values[owner].get(name)) != (now := after.values[owner].get(name))
        and not (owner == "run" and name in FREE)
    ]
    if changed:
        free = ", ".join(f"--{name.replace('_', '-')}" for name in FREE)
        lines = "\n".join(changed)
        raise ConfigError(
            f"a continued run stays the run it was:\n{lines}\nonly {free} may change; --init-from starts a new run"
        )
    return after


def read_file(path: Path) -> Values:
    """A run file: the sections [run], [env], [algo] and [policy]; [about] is for people and ignored."""
    try:
        if not path.is_file():
            raise ConfigError(f"cannot read {path}: it is {'no file' if path.exists() else 'not there'}")
        if path.stat().st_size > 1_000_000:
            raise ConfigError(f"{path} is too large to be a run file")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number or a nesting without end
        raise ConfigError(f"{path} is not TOML: {error}") from error
    for section, content in values.items():
        if not isinstance(content, dict):
            raise ConfigError(f"{path}: {section!r} stands outside a section; there are {', '.join(OWNERS)}")
    return values


def merge(*layers: Mapping[str, Mapping[str, Any]]) -> Values:
    """Later layers win, value by value."""
    merged: Values = {}
    for layer in layers:
        for owner, values in layer.items():
            merged.setdefault(owner, {}).update(values)
    return merged


def parse_set(pairs: list[str], scenario: str, algo: str) -> Values:
    """`--set owner.name=value`; a bare name where one owner alone has it."""
    values: Values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set {pair!r} must look like owner.name=value, for example algo.lr=0.001")
        owner, dot, short = name.partition(".")
        if not dot:
            owner, short = _owner(name, scenario, algo), name
        if owner not in ("run", "env", "algo"):
            raise ConfigError(options.unknown(owner, ["run", "env", "algo"], what="owner of options"))
        values.setdefault(owner, {})[short] = value
    return values


def _owner(name: str, scenario: str, algo: str) -> str:
    schemas = {"run": Run, "env": plugins.environment(scenario), "algo": plugins.algorithm(algo)}
    names = {owner: [o.name for o in options.describe(schema)] for owner, schema in schemas.items()}
    owners = [owner for owner, known in names.items() if name in known]
    if len(owners) > 1:
        raise ConfigError(f"{name!r} could be {' or '.join(f'{o}.{name}' for o in owners)}; say which")
    if not owners:
        known = [short for shorts in names.values() for short in shorts]
        raise ConfigError(options.unknown(name, known, what="option"))
    return owners[0]


def match_agents(policy: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Which agents the patterns name, and what plays them; the last pattern wins."""
    chosen: dict[str, str] = {}
    for pattern, source in policy.items():
        hits = [name for name in names if fnmatchcase(name, pattern)]
        if not hits:
            raise ConfigError(f"--policy {pattern}={source}: no agent is called so; there is {', '.join(names)}")
        chosen |= dict.fromkeys(hits, source)
    return chosen
