"""Optimizer, clipping and target update, against torch's own and by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.nets import Adam, clip_parts, polyak


def gradients(seed, steps, shape=(3, 10)):
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=made) * 10 ** (i % 4 - 2) for i in range(steps)]


@pytest.mark.parametrize("lr", [1e-3, 0.1])
def test_adam_is_torchs_adam(lr):
    flat = torch.randn(3, 10, generator=torch.Generator().manual_seed(1))
    theirs = flat.clone().requires_grad_()
    ours, reference = Adam(flat, lr), torch.optim.Adam([theirs], lr=lr)
    for gradient in gradients(0, 50):
        ours.step(gradient)
        theirs.grad = gradient.clone()
        reference.step()
    torch.testing.assert_close(flat, theirs.detach(), rtol=1e-4, atol=1e-6)


def test_adam_updates_each_unit_as_if_it_were_alone():
    flat = torch.zeros(3, 10)
    alone = [torch.zeros(1, 10) for _ in range(3)]
    together, each = Adam(flat, 0.1), [Adam(one, 0.1) for one in alone]
    for gradient in gradients(0, 20):
        together.step(gradient)
        for unit, adam in enumerate(each):
            adam.step(gradient[unit : unit + 1])
    assert torch.equal(flat, torch.cat(alone))


@settings(max_examples=20, deadline=None)
@given(before=st.integers(0, 10), after=st.integers(1, 10))
def test_adam_goes_on_bit_for_bit_from_a_saved_state(before, after):
    flat = torch.ones(3, 10)
    adam = Adam(flat, 0.1)
    steps = gradients(2, before + after)
    for gradient in steps[:before]:
        adam.step(gradient)
    state, kept = adam.state(), flat.clone()
    saved = {name: np.array(value) for name, value in state.items()}
    for gradient in steps[before:]:
        adam.step(gradient)
    assert all(np.array_equal(state[name], saved[name]) for name in saved), "what is saved stays as it was"
    other = Adam(kept, 0.1)
    other.load(state)
    for gradient in steps[before:]:
        other.step(gradient)
    assert torch.equal(kept, flat)
    assert other.steps == adam.steps == before + after


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.floats(-100, 100, width=32), min_size=10, max_size=10),
    split=st.integers(1, 9),
    limit=st.floats(0.0625, 64, width=32),
)
def test_each_tensor_is_cut_to_the_limit_keeps_its_direction_and_is_left_alone_below_it(values, split, limit):
    flat = np.array([values], np.float32)
    clipped = clip_parts(flat, [split, 10 - split], limit)
    assert clipped.dtype == np.float32
    for before, after in zip(np.split(flat, [split], 1), np.split(clipped, [split], 1), strict=True):
        norm = np.linalg.norm(before)
        assert np.linalg.norm(after) <= limit * (1 + 1e-5)
        expected = before if norm <= limit else before * (limit / norm)
        np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-6)


def test_tensors_and_units_are_cut_apart():
    flat = np.array([[3.0, 4.0, 0.1], [0.1, 0.1, 9.0]], np.float32)
    clipped = clip_parts(flat, [2, 1], 1.0)
    np.testing.assert_allclose(clipped, [[0.6, 0.8, 0.1], [0.1, 0.1, 1.0]], rtol=1e-6)
    assert flat[0, 0] == 3.0, "what was given is not changed"


def test_no_limit_cuts_nothing():
    flat = np.full((1, 4), 1e6, np.float32)
    assert np.array_equal(clip_parts(flat, [4], 0), flat)


def test_a_gradient_of_zeros_stays_zeros():
    assert not clip_parts(np.zeros((2, 4), np.float32), [2, 2], 0.5).any()


@pytest.mark.parametrize("tau", [0.0, 0.01, 1.0])
def test_a_target_moves_by_its_share(tau):
    target, online = torch.full((2, 3), 1.0), torch.full((2, 3), 5.0)
    polyak(target, online, tau)
    torch.testing.assert_close(target, torch.full((2, 3), 1 + 4 * tau))
    assert torch.equal(online, torch.full((2, 3), 5.0))
