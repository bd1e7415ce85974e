"""The wheel: step, remember, learn when due, now and then evaluate and save.

Everything that happens is decided by the configuration and its seed. A save is taken between two
turns, when all parts of the run agree on what has happened.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

from marlctl.config import Config
from marlctl.contracts import BatchedEnv, Learner
from marlctl.errors import ConfigError, FileError
from marlctl.evaluation import COPIES, Scores, cast_of, play
from marlctl.executors import Serial
from marlctl.finite import check_gradients, check_metrics
from marlctl.memory import Ring, make_memory
from marlctl.metrics import Lines, Tally, returns_row
from marlctl.opening import check_room, make_env, memory_kind, open_env
from marlctl.policies import load_into, spec_note
from marlctl.records import EnvSpec
from marlctl.rollout import Player
from marlctl.rundir import RunFolder
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
    best: float = -math.inf


class Wheel:
    """A run in motion: its parts, and what one turn does with them."""

    def __init__(self, config: Config, folder: RunFolder, watch: Watch) -> None:
        self.config, self.folder, self.watch = config, folder, watch
        run = config.run
        self.env, self.spec = open_env(config, run.num_envs)
        self.learner: Learner = config.algo.build(self.env.spec, seed=run.seed, device=run.device)
        kind = memory_kind(config)
        check_room(kind, self.env.spec)
        self.memory = make_memory(kind, self.env.spec, run.num_envs, run.seed)
        self.executor = Serial()
        self.player = Player(self.env, self.learner, seed=run.seed, mode="explore")
        self.tally = Tally(self.env.spec)
        self.counters = Counters()
        self.checkpoints = Checkpoints(folder.path)
        self.time = {"sampling": 0.0, "learning": 0.0, "evaluation": 0.0, "saving": 0.0}
        self._judge: BatchedEnv | None = None
        self._begin = perf_counter()
        self._steps_before = 0
        self._saved_at = -1
        self._last_row: Mapping[str, Any] = {}

    # -- one turn -------------------------------------------------------------------------------

    def turn(self) -> None:
        """One step of every copy, and whatever is due after it."""
        run, counters = self.config.run, self.counters
        steps, episodes = counters.steps, counters.episodes
        played, ended = self.player.step()
        self.memory.add(played.obs, played.mask, played.acts, played.step)
        counters.steps += self.env.n
        counters.episodes += len(ended.lengths)
        self.tally.add_episodes(ended.returns, ended.lengths)
        for _ in range(self.memory.due(steps, counters.steps)):
            self._learn()
        if len(ended.lengths) == 0:
            return

        def crossed(every: int | None) -> bool:
            return bool(every) and episodes // every != counters.episodes // every  # type: ignore[operator]

        if crossed(run.log_every):
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
        check_metrics(metrics)
        self.counters.updates += 1
        losses = {f"{unit}.{name}": loss for unit, g in gradients.items() for name, loss in g.losses.items()}
        self.tally.add_update(losses)
        self.time["sampling"] += middle - start
        self.time["learning"] += perf_counter() - middle

    # -- now and then ---------------------------------------------------------------------------

    def _log(self) -> None:
        counters = self.counters
        where = {"kind": "train", "step": counters.steps, "episode": counters.episodes, "update": counters.updates}
        self._write({**where, **self.tally.row()})

    def _write(self, row: Mapping[str, Any]) -> None:
        self._last_row = row
        self.metrics.append(row)
        seconds = perf_counter() - self._begin
        self.timings.append({"step": row["step"], "kind": row["kind"], "seconds": seconds, **self._spent()})
        self.watch.row(row)

    def _spent(self) -> dict[str, float]:
        return {**self.player.time, **self.time}

    def progress(self) -> Progress:
        c = self.counters
        seconds = perf_counter() - self._begin
        here = c.steps - self._steps_before
        return Progress(c.episodes, c.steps, c.updates, seconds, here, self._spent(), self._last_row)

    def _evaluate(self) -> None:
        start = perf_counter()
        run, counters = self.config.run, self.counters
        scores = self._play()
        counters.judged = counters.steps
        row = {"kind": "eval", "step": counters.steps, "episode": counters.episodes, "update": counters.updates}
        row |= {"return": returns_row(scores.spec, scores.returns.mean(0)), "length": float(scores.lengths.mean())}
        self._write(row)
        score = scores.of(run.best_by)
        if score > counters.best:
            counters.best = score
            note = {**self._note(), "score": score, "best_by": run.best_by}
            self.checkpoints.save_best(counters.steps, {"weights": self.learner.weights()}, note)
        self.time["evaluation"] += perf_counter() - start

    def _play(self) -> Scores:
        """Games apart from training's: their own copies, seeds and random numbers."""
        run = self.config.run
        if self._judge is None:
            self._judge = make_env(self.config, min(COPIES, run.eval_episodes))
        cast = cast_of(self.config, self._judge.spec, self.learner)
        seed = key(run.seed, "evaluation") & (2**63 - 1)
        return play(self._judge, cast, seed=seed, mode=self.learner.plays, episodes=run.eval_episodes)

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
        return {"config": self.config.digest, "spec": spec_note(self.env.spec), **counts}

    def state(self) -> dict[str, Any]:
        return {
            "learner": self.learner.state(),
            "player": self.player.state(),
            "memory": self.memory.state(),
            "tally": self.tally.state(),
            "counters": dataclasses.asdict(self.counters),
        }

    def open_logs(self, keep: int | None = 0) -> None:
        self.metrics = Lines(self.folder.metrics, keep=keep)
        self.timings = Lines(self.folder.timings)

    def restore(self) -> list[str]:
        """Go on from the newest whole checkpoint; what the user should know about it."""
        manifest, skipped = self.checkpoints.newest()
        notes = [f"skipped {name}" for name in skipped]
        if manifest.note.get("config") != self.config.digest:
            raise FileError(f"the checkpoint of step {manifest.step} is of another run than run.toml describes")
        state = self.checkpoints.read_state(manifest)
        load_into(self.learner, state, manifest)
        try:
            exact = self.player.load(state["player"])
            self.memory.load(state["memory"])
            self.tally.load(state["tally"])
            self.counters = Counters(**state["counters"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise FileError(f"the checkpoint of step {manifest.step} is incomplete: {error!r}") from error
        if isinstance(self.memory, Ring):
            if manifest.replay is None:
                raise ConfigError("this run kept no replay buffer (--no-save-replay) and cannot go on; --init-from can")
            self.checkpoints.fill(manifest, self.memory)
        if not exact:
            notes.append("this environment does not resume exactly: its open episodes came back different")
        self.open_logs(keep=int(manifest.note["metrics_bytes"]))
        self._steps_before = self._saved_at = self.counters.steps
        return notes

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
        if self._judge is not None:
            self._judge.close()
        if hasattr(self, "metrics"):
            self.metrics.close()
            self.timings.close()
