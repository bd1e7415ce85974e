"""Training from start to end: check everything, make or continue the run folder, turn the wheel, leave cleanly."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from marlctl.config import Config, match_agents
from marlctl.errors import MarlctlError
from marlctl.evaluation import Interrupted
from marlctl.memory import Ring
from marlctl.opening import blaming, take_weights
from marlctl.records import Replay
from marlctl.rundir import RunFolder, lock
from marlctl.storage.files import trial
from marlctl.wheel import Watch, Wheel

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them


class Stopped(MarlctlError):
    """A signal ended the run, after a checkpoint was saved."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}; everything is saved")
        self.exit_code = 128 + number


def train(config: Config, folder: RunFolder, watch: Watch, *, restore: bool = False) -> None:
    """Train until the budget is spent; with `restore`, go on where the folder's newest checkpoint is."""
    with lock(folder), blaming(config), _signals() as stop:
        wheel = Wheel(config, folder, watch, lambda: stop.number)
        try:
            _settle_torch(config.run.threads)
            notes = _begin(wheel, restore=restore)
            watch.started(config, wheel.spec, notes)
            _turn(wheel, watch)
            if stop.number:
                wheel.save()
                raise Stopped(stop.number)
            wheel.finish()
        except Interrupted:  # while it was finishing, and everything is saved by then
            raise Stopped(stop.number) from None
        finally:
            wheel.close()


def _turn(wheel: Wheel, watch: Watch) -> None:
    """Turn the wheel until the budget is spent or somebody wishes to stop."""
    with suppress(Interrupted):
        wheel.settle()
        while not (wheel.done or wheel.stop()):
            wheel.turn()
            watch.tick(wheel.progress)


def _begin(wheel: Wheel, *, restore: bool) -> list[str]:
    """The last checks before step 1, and the state to begin from."""
    config, memory = wheel.config, wheel.memory
    fixed = match_agents(config.policy, wheel.spec.names)
    notes = [f"{agent} does not learn; it plays as {who}" for agent, who in fixed.items()]
    notes.append(f"memory: {memory.nbytes / 1e6:,.0f} MB")
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if config.run.threads > 1 and busy + config.run.threads > (os.cpu_count() or 1) + 1:
        notes.append(f"this machine is busy (load {busy:.1f}): --threads 1 may well be faster")
    keeps_rows = isinstance(memory, Ring) and config.run.save_replay and not restore
    trial(wheel.folder.path, memory.nbytes if keeps_rows else 1 << 18)
    if restore:
        notes += wheel.restore()
        wheel.checkpoints.tidy()
        wheel.folder.write(config)  # with its longer budget
        return notes
    wheel.open_logs()
    if config.run.init_from:
        take_weights(wheel.learner, wheel.env.spec, config.run.init_from)
    kind, budget = config.algo.memory, config.budget_steps
    first = kind.warmup if isinstance(kind, Replay) else kind.steps * config.run.num_envs
    if budget is not None and budget < first:
        notes.append(f"nothing will be learnt: the first update comes after {first:,} steps, the budget is {budget:,}")
    wheel.save()  # a run can be continued from its very beginning
    return notes


def _settle_torch(threads: int) -> None:
    """Where the algorithm brought torch along: its threads, and memory that is kept instead of given back.

    An update frees and takes the same megabytes again; glibc would hand them to the system and back each
    time, which costs a third of the update.
    """
    torch = sys.modules.get("torch")
    if torch:
        torch.set_num_threads(threads)
        with suppress(OSError, AttributeError):  # no glibc here
            for setting in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
                ctypes.CDLL(None).mallopt(setting, 1 << 30)


class _Stop:
    number = 0


@contextmanager
def _signals() -> Iterator[_Stop]:
    """Turn the first signal into a wish to stop; the second one ends the process as usual."""
    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread may set handlers; a notebook's worker is stopped otherwise
        return

    def note(number: int, _frame: FrameType | None) -> None:
        stop.number = number
        signal.signal(number, before[number])

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    before = {n: handler for n, handler in before.items() if handler != signal.SIG_IGN}  # nohup wants to be left alone
    for number in before:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
