"""What every test may use."""

import os

# The tests run side by side, one process a core: torch with more threads would only fight itself.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run of the tests."""
    return np.random.default_rng(7)
