"""Action heads: one-hot, soft and squashed actions, masks, and where they lie in the joint action."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from marlctl.nets import Heads, gumbel
from marlctl.records import ActionSpec, Layout

SPECS = {
    "choose": ActionSpec("discrete", (4,)),
    "both": ActionSpec("discrete", (3, 2)),
    "box": ActionSpec("box", (2,), (-1.0, 0.0), (1.0, 5.0)),
}
ALL = torch.arange(3)


def heads(names=tuple(SPECS), soft=False):
    layout = Layout.of_sizes({name: SPECS[name].size for name in SPECS})
    return Heads(names, [SPECS[name] for name in names], layout, soft=soft, device="cpu"), layout


def outputs(head, rows=6, seed=0, scale=1.0):
    return scale * torch.randn(head.used.shape[0], rows, head.size, generator=torch.Generator().manual_seed(seed))


def joint(soft=False, **how):
    head, layout = heads(soft=soft)
    out = how.pop("out", outputs(head))
    return layout.joint(head.join(head.action(out, ALL, **{"noise": None, **how})).detach().numpy())


def test_a_discrete_action_is_one_hot_in_each_of_its_parts():
    acts = joint()
    for block in (acts["choose"], acts["both"][:, :3], acts["both"][:, 3:]):
        assert (block.sum(1) == 1).all()
        assert ((block == 0) | (block == 1)).all()


def test_without_noise_the_likeliest_action_is_taken():
    head, _ = heads()
    out = outputs(head)
    used = out[0].masked_fill(~head.used[0, 0], -torch.inf)
    assert joint(out=out)["choose"].argmax(1).tolist() == used.argmax(1).tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100), st.floats(0.1, 1e4))
def test_a_squashed_action_stays_in_its_box(seed, scale):
    head, _ = heads()
    box = joint(out=outputs(head, seed=seed, scale=scale))["box"]
    assert (box >= [-1, 0]).all()
    assert (box <= [1, 5]).all()


def test_the_middle_of_a_box_is_where_the_output_is_zero():
    head, _ = heads()
    np.testing.assert_allclose(joint(out=torch.zeros(3, 2, head.size))["box"], [[0, 2.5]] * 2)


def test_a_soft_action_is_a_probability():
    acts = joint(soft=True)
    np.testing.assert_allclose(acts["box"].sum(1), 1, rtol=1e-6)
    assert ((acts["box"] > 0) & (acts["box"] < 1)).all()


def test_gumbel_noise_draws_from_the_policy():
    head, _ = heads(("choose",))
    rows = 20_000
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0])
    noise = torch.from_numpy(gumbel(np.random.default_rng(0).random((1, rows, head.size), np.float32)))
    action = head.action(logits.expand(1, rows, 4), torch.tensor([0]), noise=noise)
    np.testing.assert_allclose(action[0].mean(0), torch.softmax(logits, 0), atol=0.01)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.data())
def test_a_masked_action_is_never_taken_whatever_the_noise(seed, data):
    head, layout = heads(("choose", "both"))
    units, rows = torch.arange(2), 4
    allowed = np.ones((rows, layout.width), bool)
    for row in range(rows):
        for start, size in ((0, 4), (4, 3), (7, 2)):
            open_ = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
            allowed[row, start : start + size] = [i in open_ for i in range(size)]
    mask = head.spread(torch.from_numpy(allowed), units)
    noise = torch.from_numpy(gumbel(np.random.default_rng(seed).random((2, rows, head.size), np.float32)))
    taken = head.join(head.action(outputs(head, rows, seed, 50.0), units, noise=noise, mask=mask)).detach().numpy()
    assert (allowed | (taken == 0)).all()
    assert (taken[:, :9].sum(1) == 3).all()


def test_a_one_hot_action_has_the_gradient_of_its_softmax():
    head, _ = heads(("choose",))
    out = outputs(head).requires_grad_()
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    (head.action(out, torch.tensor([0]), noise=None) * weight).sum().backward()
    soft = outputs(head).requires_grad_()
    (torch.softmax(soft, -1) * weight).sum().backward()
    torch.testing.assert_close(out.grad, soft.grad)


def test_padding_gets_no_gradient():
    head, _ = heads()
    out = outputs(head).requires_grad_()
    (head.join(head.action(out, ALL, noise=None)) * torch.randn(6, head.width)).sum().backward()
    assert not out.grad[~head.used.expand_as(out)].any()


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("names", [tuple(SPECS), ("choose",), ("both",), ("box",)])
def test_the_way_back_by_hand_is_autograds(names, masked, soft):
    head, _ = heads(names, soft=soft)
    out = outputs(head).requires_grad_()
    draw = torch.Generator().manual_seed(1)
    how = {"noise": torch.randn(out.shape, generator=draw), "mask": None}
    if masked:
        how["mask"] = torch.randn(out.shape, generator=draw) < 1
        how["mask"][:, 0] = False  # a part with nothing to choose
    action = head.action(out, slice(None), **how)
    gradient = torch.randn(out.shape, generator=draw) * head.used  # what comes back never reaches the padding
    action.backward(gradient)
    torch.testing.assert_close(head.back(gradient, out.detach(), slice(None), **how), out.grad)


def test_what_is_joined_is_spread_back_to_whom_it_belongs():
    head, layout = heads()
    acts = head.action(outputs(head), ALL, noise=None)
    together = head.join(acts)
    assert together.shape == (6, layout.width)
    back = head.spread(together, ALL)
    used = head.used.expand_as(acts)
    torch.testing.assert_close(back[used], acts[used])
    assert not back[~used].any()


def test_squares_are_means_over_the_outputs_a_unit_uses():
    head, _ = heads()
    out = torch.full((3, 2, head.size), 2.0) * head.used + 100.0 * ~head.used
    torch.testing.assert_close((out.square() * head.share).sum(2), torch.full((3, 2), 4.0))
    assert [int(head.outputs(unit).sum()) for unit in range(3)] == [4, 5, 2]


@pytest.mark.parametrize("uniform", [0.0, 1e-45, 2.0**-25, 0.5, 1 - 2.0**-24])
def test_gumbel_noise_is_finite_for_every_number_that_can_be_drawn(uniform):
    assert np.isfinite(gumbel(np.array([uniform], np.float32))).all()


def test_gumbel_noise_has_gumbels_mean_and_spread():
    drawn = gumbel(np.random.default_rng(1).random(200_000, np.float32))
    assert drawn.mean() == pytest.approx(0.5772, abs=0.01)
    assert drawn.var() == pytest.approx(np.pi**2 / 6, abs=0.03)
