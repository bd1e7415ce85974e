"""Stacked networks: each is the network it would be alone, and starts the same whatever it is stacked with."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.nets import MLP
from marlctl.testing.networks import LAYERS, as_torch


def stacked(shape: MLP, units: int) -> torch.Tensor:
    rows = [shape.init(np.random.default_rng(u), inputs=shape.sizes[0], outputs=shape.sizes[-1]) for u in range(units)]
    return torch.from_numpy(np.stack(rows))


@pytest.mark.parametrize("activation", LAYERS)
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("sizes", [(4, 3), (5, 8, 2), (3, 16, 16, 1)])
def test_every_network_of_a_stack_is_the_network_it_would_be_alone(activation, layer_norm, sizes):
    shape = MLP(sizes, activation, layer_norm)
    flat, x = stacked(shape, 3), torch.randn(3, 7, sizes[0], generator=torch.Generator().manual_seed(0))
    out = shape(flat, x)
    assert out.shape == (3, 7, sizes[-1])
    for unit in range(3):
        torch.testing.assert_close(out[unit], as_torch(shape, flat[unit])(x[unit]))


def test_the_gradient_of_one_network_does_not_reach_another():
    shape = MLP((4, 8, 2))
    flat = stacked(shape, 3).requires_grad_()
    shape(flat, torch.ones(3, 5, 4))[1].sum().backward()
    assert flat.grad[1].abs().sum() > 0
    assert flat.grad[0].abs().sum() == flat.grad[2].abs().sum() == 0


def test_tensors_lie_in_the_flat_vector_in_the_order_they_are_named():
    shape = MLP((4, 8, 2))
    assert shape.shapes == {"0.weight": (4, 8), "0.bias": (8,), "1.weight": (8, 2), "1.bias": (2,)}
    assert shape.lengths == [32, 8, 16, 2]
    assert shape.size == 58


def test_weights_begin_xavier_uniform_and_biases_at_zero():
    shape = MLP((100, 200, 10))
    flat = shape.init(np.random.default_rng(0), inputs=100, outputs=10)
    assert flat.dtype == np.float32
    first, bias, second, last = np.split(flat, np.cumsum(shape.lengths)[:-1])
    for weight, fans in ((first, 300), (second, 210)):
        bound = np.sqrt(6 / fans)
        assert 0.98 * bound < np.abs(weight).max() <= bound
        assert weight.std() == pytest.approx(bound / np.sqrt(3), rel=0.05)
    assert not bias.any()
    assert not last.any()


@settings(max_examples=25, deadline=None)
@given(
    inputs=st.integers(1, 6),
    outputs=st.integers(1, 4),
    more_in=st.integers(0, 5),
    more_out=st.integers(0, 3),
    seed=st.integers(0, 9),
)
def test_a_unit_starts_the_same_whatever_it_is_stacked_with(inputs, outputs, more_in, more_out, seed):
    """Padding the inputs and outputs to the widest unit's changes nothing of what this one computes."""
    own = MLP((inputs, 8, outputs))
    padded = MLP((inputs + more_in, 8, outputs + more_out))
    one = own.init(np.random.default_rng(seed), inputs=inputs, outputs=outputs)
    other = padded.init(np.random.default_rng(seed), inputs=inputs, outputs=outputs)
    x = torch.from_numpy(np.random.default_rng(seed + 1).normal(size=(1, 5, inputs)).astype(np.float32))
    wide = torch.nn.functional.pad(x, (0, more_in), value=3.0)  # what stands in the padding is not read
    out = padded(torch.from_numpy(other)[None], wide)
    torch.testing.assert_close(out[..., :outputs], own(torch.from_numpy(one)[None], x))
    assert not out[..., outputs:].any()
