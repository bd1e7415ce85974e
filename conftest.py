"""What every test may use."""

import os

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
