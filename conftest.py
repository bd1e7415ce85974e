"""What every test may use."""

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run of the tests."""
    return np.random.default_rng(7)
