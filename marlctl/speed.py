"""How fast a scenario steps and a run trains on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from marlctl.config import Config, Values, resolve
from marlctl.contracts import BatchedEnv
from marlctl.errors import MarlctlError
from marlctl.opening import blaming, make_env, start
from marlctl.policies import Random
from marlctl.records import EnvSpec
from marlctl.training import train
from marlctl.wheel import Progress

FOREVER = 10**9  # steps; the clock ends a measurement, not the budget
SKIP = 20, 2.0  # updates, or seconds of learning, after which a run is warm
COPIES = 32, 256  # beside one, to step where the scenario can step many at once
# Where the algorithm has such options: less to wait for, and less memory to ask for.
SMALLER = {"warmup": 2_048, "capacity": 100_000}


def smaller(values: Values) -> Config:
    """The run with a short warm-up and a small ring, where its algorithm has them and nobody chose."""
    own = resolve(values).algo
    less = {name: min(size, getattr(own, name)) for name, size in SMALLER.items() if hasattr(own, name)}
    return resolve({**values, "algo": {**less, **values.get("algo", {})}})


def measure(config: Config, seconds: float) -> dict[str, Any]:
    """Environment steps, updates and training steps a second, in about so many seconds."""
    run = config.run
    copies = sorted({1, run.num_envs, *(COPIES if getattr(config.env, "good_copies", 1) > 1 else ())})
    each = seconds / 4 / len(copies)
    return {
        "scenario": run.scenario,
        "algo": run.algo,
        "num_envs": run.num_envs,
        "threads": run.threads,
        "environment_steps_a_second": {str(n): env_speed(config, n, each) for n in copies},
        **train_speed(config, seconds / 2, patience=max(30.0, seconds)),
    }


def env_speed(config: Config, n: int, seconds: float) -> float:
    """Steps a second of n copies that are given random actions; drawing them takes none of the time."""
    with blaming(config):
        env = make_env(config, n)
        try:
            steps, spent = 0, 0.0
            for took in _steps(env):
                steps, spent = steps + n, spent + took
                if spent >= seconds:
                    break
        finally:
            env.close()
    return steps / spent


def _steps(env: BatchedEnv) -> Iterator[float]:
    """Seconds of one step after another, without end."""
    rng, seeds, policy = np.random.default_rng(0), range(env.n), Random(env.spec)
    obs, mask = env.reset(seeds)
    while True:
        # Where actions are masked, the next can only be drawn once the last was taken.
        ahead = 25 if mask is None else 1
        actions = [policy.act(obs, {}, rng=rng, mode="sample", mask=mask).action for _ in range(ahead)]
        for action in actions:
            begin = perf_counter()
            step = env.step(action, seeds)
            yield perf_counter() - begin
        obs, mask = step.obs, step.mask


def train_speed(config: Config, seconds: float, *, patience: float = 60.0) -> dict[str, Any]:
    """A real run, with its metrics and checkpoints, in a folder that is gone afterwards; measured once it is warm."""
    clock = _Clock(seconds, patience)
    with TemporaryDirectory(prefix="marlctl-bench-") as place:
        config, folder = start(config, Path(place), "bench")
        with suppress(_Enough):
            train(config, folder, clock)
    return clock.result()


class _Enough(MarlctlError):
    """The time is over."""


class _Clock:
    """Watches a run: notes where it was when it got warm, and ends it when the time is over."""

    def __init__(self, seconds: float, patience: float) -> None:
        self.seconds, self.patience = seconds, patience
        self.first: Progress | None = None  # once there was an update
        self.begin: Progress | None = None  # once it was warm
        self.end: Progress | None = None

    def tick(self, progress: Callable[[], Progress]) -> None:
        now = perf_counter()
        if self.begin is None:
            self._warm(progress(), now)
        elif now >= self._over:
            self.end = progress()
            if self.end.updates > self.begin.updates:  # else the first one is still to come
                raise _Enough

    def _warm(self, here: Progress, now: float) -> None:
        if here.updates == 0:
            if here.seconds > self.patience:
                self.begin = self.end = here
                raise _Enough
            return
        self.first = self.first or here
        updates, learning = SKIP
        if here.updates >= updates or here.seconds - self.first.seconds >= learning:
            self.begin, self._over = here, now + self.seconds

    def result(self) -> dict[str, Any]:
        """Steps a second, milliseconds an update, and what part of the time went where."""
        if self.begin is None or self.end is None or self.end.updates == self.begin.updates:
            return {"training_steps_a_second": None, "update_ms": None, "warm_up_seconds": None, "time": {}}
        seconds = self.end.seconds - self.begin.seconds
        spent = {name: self.end.time[name] - self.begin.time[name] for name in self.end.time}
        updates = self.end.updates - self.begin.updates
        return {
            "training_steps_a_second": (self.end.steps - self.begin.steps) / seconds,
            "update_ms": 1000 * (spent["learning"] + spent["sampling"]) / updates,
            "warm_up_seconds": self.begin.seconds,
            "time": {name: part / seconds for name, part in spent.items()},
        }

    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None: ...
    def row(self, row: Mapping[str, Any]) -> None: ...
    def saved(self, step: int) -> None: ...
