"""The wheel: step, remember, learn when due, now and then evaluate and save.

Everything that happens is decided by the configuration and its seed. A save is taken between two
turns, when all parts of the run agree on what has happened.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter, time
from typing import Any, Protocol

from marlctl.config import Config
from marlctl.contracts import BatchedEnv, Learner
from marlctl.errors import ConfigError, FileError
from marlctl.evaluation import COPIES, Scores, cast_of, play
from marlctl.executors import Serial
from marlctl.finite import check_gradients, check_metrics
from marlctl.memory import Ring, make_memory
from marlctl.metrics import Lines, Tally, returns_row
from marlctl.opening import build, check_room, make_env, memory_kind, open_env
from marlctl.policies import Cast, load_into, spec_note
from marlctl.records import EnvSpec
from marlctl.rollout import Player
from marlctl.rundir import RunFolder, versions
from marlctl.scoring import Judge, Standing, task_of
from marlctl.seeding import key
from marlctl.storage.checkpoint import Checkpoints


@dataclass(frozen=True)
class Progress:
    """How far a run is; what a view shows."""

    episodes: int
    steps: int
    updates: int
    seconds: float  # of this process
    steps_here: int  # taken by this process
    time: Mapping[str, float]  # seconds by what they were spent on
    row: Mapping[str, Any]  # the newest row of metrics
    standing: Standing | None = None  # how near the task is to being solved, where the scenario says what that is


class Watch(Protocol):
    """Whoever wants to know: the live view, plain lines, a test. Watching changes nothing."""

    def started(self, config: Config, spec: EnvSpec, notes: list[str]) -> None: ...
    def tick(self, progress: Callable[[], Progress]) -> None: ...
    def row(self, row: Mapping[str, Any]) -> None: ...
    def saved(self, step: int) -> None: ...


@dataclass
class Counters:
    """How often the wheel has turned."""

    steps: int = 0
    episodes: int = 0
    updates: int = 0
    judged: int = -1  # steps at the last evaluation
    judging: int = 0  # 1 while an evaluation is under way, to be made again when it is interrupted
    best: float = -math.inf

    @property
    def marks(self) -> int:
        """What rows, evaluations and saves are timed by: episodes, and 1000 steps where one is longer."""
        return max(self.episodes, self.steps // 1000)


class Wheel:
    """A run in motion: its parts, and what one turn does with them."""

    def __init__(self, config: Config, folder: RunFolder, watch: Watch, stop: Callable[[], int] = lambda: 0) -> None:
        self.config, self.folder, self.watch, self.stop = config, folder, watch, stop
        run = config.run
        self.env, self.spec = open_env(config, run.num_envs, folder)
        self.learner: Learner = build(config, self.env.spec)
        kind = memory_kind(config)
        check_room(kind, self.env.spec, config.run.num_envs)
        self.memory = make_memory(kind, self.env.spec, run.num_envs, run.seed)
        self.executor = Serial()
        self.player = Player(self.env, self.learner, seed=run.seed, mode="explore", whole=self.spec)
        self.tally = Tally(self.spec)
        self.task = task_of(config.env, len(self.spec.names))
        self.judge = Judge(self.task) if self.task else None
        self.counters = Counters()
        self.checkpoints = Checkpoints(folder.path)
        self.time = {"sampling": 0.0, "learning": 0.0, "evaluation": 0.0, "saving": 0.0}
        self._evaluated: tuple[BatchedEnv, Cast] | None = None  # made when it is first needed
        self._logs: tuple[Lines, ...] = ()
        self._begin, self._began = perf_counter(), time()  # of this process
        self._steps_before = 0
        self._saved_at = -1
        self._last_row: Mapping[str, Any] = {}

    # -- one turn -------------------------------------------------------------------------------

    def turn(self) -> None:
        """One step of every copy, and whatever is due after it."""
        run, counters = self.config.run, self.counters
        steps, marks = counters.steps, counters.marks
        played, ended = self.player.step()
        self.memory.add(played.obs, played.mask, played.acts, played.step)
        counters.steps += self.env.n
        counters.episodes += len(ended.lengths)
        self.tally.add_episodes(ended.returns, ended.lengths)
        solved = self.judge.add(ended.returns, counters.episodes - len(ended.lengths)) if self.judge else None
        if solved:
            self._write({**self._where("solved"), **solved})
        for _ in range(self.memory.due(steps, counters.steps)):
            self._learn()
        if counters.marks == marks:
            return

        def crossed(every: int) -> bool:
            return every > 0 and marks // every != counters.marks // every

        if crossed(run.log_every or (10 if counters.episodes <= 1000 else 100)):
            self._log()
        if crossed(run.eval_every):
            self._evaluate()
        if crossed(run.save_rate):
            self.save()

    def _learn(self) -> None:
        start = perf_counter()
        batch = self.memory.batch(self.counters.updates)
        middle = perf_counter()
        gradients = self.executor.gradients(self.learner, batch, self.counters.updates)
        check_gradients(gradients)
        metrics = self.learner.apply(gradients)
        check_metrics(metrics, self.learner.weights)
        self.counters.updates += 1
        losses = {f"{unit}.{name}": loss for unit, g in gradients.items() for name, loss in g.losses.items()}
        self.tally.add_update(losses)
        self.time["sampling"] += middle - start
        self.time["learning"] += perf_counter() - middle

    # -- now and then ---------------------------------------------------------------------------

    def _log(self) -> None:
        self._write({**self._where("train"), **self.tally.row(), **(self.judge.row() if self.judge else {})})

    def _where(self, kind: str) -> dict[str, Any]:
        counters = self.counters
        return {"kind": kind, "step": counters.steps, "episode": counters.episodes, "update": counters.updates}

    def _write(self, row: Mapping[str, Any]) -> None:
        if row["kind"] != "solved":  # it tells nothing of returns
            self._last_row = row
        self.metrics.append(row)
        seconds = perf_counter() - self._begin
        where = {"step": row["step"], "kind": row["kind"], "began": self._began}
        self.timings.append({**where, "seconds": seconds, **self._spent()})
        self.watch.row(row)

    def _spent(self) -> dict[str, float]:
        return {**self.player.time, **self.time}

    def progress(self) -> Progress:
        c = self.counters
        seconds = perf_counter() - self._begin
        here = c.steps - self._steps_before
        standing = self.judge.standing() if self.judge else None
        return Progress(c.episodes, c.steps, c.updates, seconds, here, self._spent(), self._last_row, standing)

    def _evaluate(self) -> None:
        start = perf_counter()
        run, counters = self.config.run, self.counters
        counters.judging = 1
        scores = self._play()
        counters.judging, counters.judged = 0, counters.steps
        row = {"return": returns_row(scores.spec, scores.returns.mean(0)), "length": float(scores.lengths.mean())}
        own = {} if scores.score is None else {"score": scores.score}
        self._write({**self._where("eval"), **row, **own})
        score = scores.of(run.best_by or "total")
        if score > counters.best:
            counters.best = score
            note = {**self._note(), "score": score, "best_by": run.best_by}
            self.checkpoints.save_best(counters.steps, {"weights": self.learner.weights()}, note)
        self.time["evaluation"] += perf_counter() - start

    def _play(self) -> Scores:
        """Games apart from training's: their own copies, seeds and random numbers."""
        run = self.config.run
        if self._evaluated is None:
            env = make_env(self.config, min(COPIES, run.eval_episodes))
            self._evaluated = env, cast_of(self.config, self.folder, env.spec, self.learner)
        env, cast = self._evaluated
        seed = key(run.seed, "evaluation") & (2**63 - 1)
        plays = self.learner.plays
        scores = play(env, cast, seed=seed, mode=plays, episodes=run.eval_episodes, stop=lambda: bool(self.stop()))
        return dataclasses.replace(scores, task=self.task)

    # -- keeping --------------------------------------------------------------------------------

    def save(self) -> None:
        start = perf_counter()
        note = {**self._note(), "metrics_bytes": self.metrics.sync()}
        memory = self.memory if isinstance(self.memory, Ring) and self.config.run.save_replay else None
        self.checkpoints.save(self.counters.steps, self.state(), note, memory)
        self._saved_at = self.counters.steps
        self.watch.saved(self.counters.steps)
        self.checkpoints.prune(self.config.run.keep)
        self.time["saving"] += perf_counter() - start

    def _note(self) -> dict[str, Any]:
        counts = {"episode": self.counters.episodes, "update": self.counters.updates}
        fixed = {"config": self.config.digest, "spec": spec_note(self.env.spec), "versions": self._versions}
        return {**fixed, **counts}

    @cached_property
    def _versions(self) -> dict[str, str]:
        return versions(self.config)

    def state(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state(),
            "player": self.player.state(),
            "memory": self.memory.state(),
            "tally": self.tally.state(),
            **({"judge": self.judge.state()} if self.judge else {}),
            "counters": dataclasses.asdict(self.counters),
        }

    def open_logs(self, keep: int | None = 0) -> None:
        self.metrics = Lines(self.folder.metrics, keep=keep)
        self.timings = Lines(self.folder.timings)
        self._logs = (self.metrics, self.timings)

    def restore(self) -> list[str]:
        """Go on from the newest whole checkpoint; what the user should know about it."""
        manifest, skipped = self.checkpoints.newest()
        notes = [f"skipped {name}" for name in skipped] + self._changed(manifest.note.get("versions"))
        if manifest.note.get("config") != self.config.digest:
            raise FileError(f"the checkpoint of step {manifest.step} is of another run than run.toml describes")
        state = self.checkpoints.read_state(manifest)
        load_into(self.learner, state, manifest)
        try:
            exact = self._load(state)
            rows_end = int(manifest.note["metrics_bytes"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise FileError(f"the checkpoint of step {manifest.step} is incomplete: {error!r}") from error
        self._refuse_less()
        if isinstance(self.memory, Ring):
            if manifest.replay is None:
                raise ConfigError("this run kept no replay buffer (--no-save-replay) and cannot go on; --init-from can")
            self.checkpoints.fill(manifest, self.memory)
        if not exact:
            notes.append("this environment does not resume exactly: its open episodes came back different")
        self.open_logs(keep=rows_end)
        self.checkpoints.forget_after(manifest)
        self._steps_before = self._saved_at = self.counters.steps
        where = f"continuing at episode {self.counters.episodes:,}, step {self.counters.steps:,}"
        over = "; its budget is spent, a larger one lets it go on" if self.done else ""
        return [where + over, *notes]

    def _load(self, state: Mapping[str, Any]) -> bool:
        """Everything but the learner; whether the environment came back as it was."""
        exact = self.player.load(state["player"])
        self.memory.load(state["memory"])
        self.tally.load(state["tally"])
        if self.judge and "judge" in state:  # not where the run began before its scenario had a task
            self.judge.load(state["judge"])
        self.counters = Counters(**state["counters"])
        if min(self.counters.steps, self.counters.episodes, self.counters.updates) < 0:
            raise ValueError("counters below zero")
        return exact

    def _refuse_less(self) -> None:
        """A continued run's budget may change, but not to less than is done."""
        counters, began = self.counters, self.folder.config().run
        for name, done in (("num_episodes", counters.episodes), ("steps", counters.steps)):
            budget = getattr(self.config.run, name)
            if budget is not None and budget < min(done, getattr(began, name)):
                raise ConfigError(f"run.{name}: {done:,} are done already, and {budget:,} are less")

    def _changed(self, saved: Any) -> list[str]:
        """Packages that are not what they were: the numbers may not be, either."""
        before = saved if isinstance(saved, dict) else {}
        changed = {name: now for name, now in self._versions.items() if before.get(name, now) != now}
        return [
            f"{name} was {before[name]} and is {now}: the run may go on differently" for name, now in changed.items()
        ]

    def settle(self) -> None:
        """Make up for the evaluation that the last process was stopped in."""
        if self.counters.judging:
            self._evaluate()

    @property
    def done(self) -> bool:
        run = self.config.run
        if run.steps is not None:
            return self.counters.steps >= run.steps
        return self.counters.episodes >= (run.num_episodes or 0)

    def finish(self) -> None:
        """The last checkpoint, row and evaluation, where they are not there already.

        The checkpoint comes first: a longer run that goes on from it has no use for the rows behind it.
        """
        if self._saved_at != self.counters.steps:
            self.save()
        if self.tally.episodes or self.tally.updates:
            self._log()
        if self.config.run.eval_every and self.counters.judged != self.counters.steps:
            self._evaluate()

    def close(self) -> None:
        self.env.close()
        if self._evaluated is not None:
            self._evaluated[0].close()
        for log in self._logs:
            log.close()
