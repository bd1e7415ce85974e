"""What every test may use."""

import os
import warnings
from collections.abc import Callable
from typing import Any

# The tests run side by side, one process a core: torch with more threads would only fight itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from marlctl import config

config._cores = lambda: 1  # for the same reason: runs get one thread unless a test says more

# A busy machine is no failure: how fast examples come is not what the tests are about.
settings.register_profile("marlctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("marlctl")


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run of the tests."""
    return np.random.default_rng(7)


@pytest.fixture
def pettingzoo_tests(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """PettingZoo's own tests of a scenario that draws itself: its interface, its seeds and every way to render."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # no window on the screen of whoever runs the tests

    def run(make: Callable[..., Any], steps: int) -> None:
        with warnings.catch_warnings():  # importing them uses what PettingZoo itself deprecates
            warnings.simplefilter("ignore", DeprecationWarning)
            from pettingzoo.test import parallel_api_test, parallel_seed_test, render_test  # noqa: PLC0415 (warns)
        from pettingzoo.utils.conversions import parallel_to_aec  # noqa: PLC0415 (slow, and few tests need it)

        parallel_api_test(make(), num_cycles=steps)
        parallel_seed_test(make, num_cycles=steps // 4)
        render_test(lambda render_mode: parallel_to_aec(make(render_mode=render_mode)))

    return run
