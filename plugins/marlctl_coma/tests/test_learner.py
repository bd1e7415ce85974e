"""One update against the formulas written out step by step, and what the options promise."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from marlctl.memory import Recent
from marlctl.policies import Random
from marlctl.records import ActionSpec, AgentSpec, Batch, EnvSpec, Rollout, Step
from marlctl.testing.networks import as_torch
from marlctl_coma import COMA

TIMES, COPIES = 6, 3


def spec(*, alike=False, teams=("agent",) * 3, masked=False):
    sizes = [(3, 4)] * 3 if alike else [(2, 4), (3, 2), (4, 3)]
    return EnvSpec(
        tuple(
            AgentSpec(f"a{i}", team, seen, ActionSpec("discrete", (actions,)))
            for i, ((seen, actions), team) in enumerate(zip(sizes, teams, strict=True))
        ),
        masked=masked,
    )


def rollout(spec, rng, *, dead=0.0, previous=False):
    """Random steps; the first two copies end an episode somewhere inside, truly and by a time limit."""
    shape = (TIMES, COPIES)
    width = spec.scalar.width
    action = Random(spec).act(spec.obs.zeros(TIMES * COPIES), {}, rng=rng, mode="sample").action.array
    ends = np.zeros((*shape, width), bool)
    late = np.zeros((*shape, width), bool)
    ends[2, 0] = late[3, 1] = True
    late[-1] = True
    alive = rng.random((*shape, width)) >= dead
    alive[..., 0] = True
    allowed = (rng.random(action.shape) < 0.5) | (action > 0)
    mask = spec.action.joint(allowed.reshape(*shape, -1)) if spec.masked else None

    def seen():
        return spec.obs.joint(rng.normal(size=(*shape, spec.obs.width)).astype(np.float32))

    return Batch(
        seen(),
        spec.action.joint(action.reshape(*shape, -1)),
        spec.scalar.joint((rng.normal(size=(*shape, width)) * alive).astype(np.float32)),
        seen(),
        spec.scalar.joint(ends),
        spec.scalar.joint(late & ~ends),
        spec.scalar.joint(alive),
        mask,
        mask,
        {"previous": np.roll(action, 1, axis=0).reshape(*shape, -1)} if previous else {},
    )


def flat_gradient(network):
    return torch.cat([(p.grad.T if p.ndim == 2 else p.grad).reshape(-1) for p in network.parameters()]).numpy()


def build(spec, **options):
    learner = COMA(**{"num_units": 8, "clip": 0.0, **options}).build(spec, seed=3, device="cpu")
    for team in learner.teams.values():  # so that a swap of networks shows
        team.target.mul_(0.7)
    return learner


def critic_input(spec, batch, t, copy, agent, *, members):
    """All observations, who is there, what the others do, whose action it is."""
    at = (t, copy)
    parts = [torch.tensor(batch.obs.array[at]), torch.tensor(batch.alive.array[at]).float()]
    for other in spec.names:
        done = torch.tensor(batch.action[other][at])
        parts.append(done * float(other != agent and batch.alive[other][at]))
    return torch.cat([*parts, torch.tensor([float(agent == member) for member in members])])


@pytest.mark.parametrize(
    ("dead", "masked", "epsilon"), [(0.0, False, 0.0), (0.4, False, 0.0), (0.4, True, 0.0), (0.4, True, 0.3)]
)
def test_the_actors_gradient_is_the_counterfactual_one_written_out_for_each_step(dead, masked, epsilon, rng):
    s = spec(masked=masked)
    learner = build(s, entropy=0.02, epsilon=epsilon)
    (team,) = learner.teams.values()
    b = rollout(s, rng, dead=dead)
    found = learner.gradients(learner.units, b, round=0)
    critic = as_torch(team.critic_shape, team.critic[0])
    for i, agent in enumerate(s.names):
        actor, size = as_torch(team.actor_shape, team.actor[i]), s[agent].action.size
        losses = []
        for t, copy in np.argwhere(b.alive[agent]):
            seen = torch.tensor(b.obs[agent][t, copy])
            seen = nn.functional.pad(seen, (0, team.actor_shape.sizes[0] - len(seen)))
            open_ = torch.tensor(b.mask[agent][t, copy]) if masked else torch.ones(size, dtype=torch.bool)
            policy = torch.softmax(actor(seen)[:size].masked_fill(~open_, -torch.inf), 0)
            policy = ((1 - epsilon) * policy + epsilon * open_ / open_.sum())[open_]
            with torch.no_grad():
                q = critic(critic_input(s, b, t, copy, agent, members=s.names))[:size][open_]
            taken = torch.tensor(b.action[agent][t, copy])[open_].argmax()
            advantage = q[taken] - (policy.detach() * q).sum()
            entropy = -(policy * policy.log()).sum()
            losses.append(-advantage * policy[taken].log() - 0.02 * entropy)
        loss = torch.stack(losses).mean()
        loss.backward()
        assert found[agent].losses["actor_loss"] == pytest.approx(loss.item(), abs=1e-5)
        np.testing.assert_allclose(found[agent].vector, flat_gradient(actor), atol=1e-5)


def test_the_critics_gradient_with_td_0_is_one_team_reward_and_the_targets_next_guess(rng):
    s = spec()
    learner = build(s, td_lambda=0.0, gamma=0.9)
    (team,) = learner.teams.values()
    b = rollout(s, rng)
    found = learner.gradients(("critic",), b, round=5)["critic"]
    critic, target = as_torch(team.critic_shape, team.critic[0]), as_torch(team.critic_shape, team.target[0])

    def guess(network, t, copy, agent):
        q = network(critic_input(s, b, t, copy, agent, members=s.names))
        return q[b.action[agent][t, copy].argmax()]

    losses, last = [], learner._expected(team, b, b.truncated.array.any(-1), 5)
    after = np.zeros((TIMES, COPIES))
    after[b.truncated.array.any(-1)] = last
    for t in range(TIMES):
        for copy in range(COPIES):
            goal = torch.tensor(b.reward.array[t, copy].sum())
            if b.truncated.array[t, copy].any():
                goal += 0.9 * after[t, copy]
            elif not b.terminated.array[t, copy].all():
                with torch.no_grad():
                    goal += 0.9 * torch.stack([guess(target, t + 1, copy, a) for a in s.names]).mean()
            losses += [(guess(critic, t, copy, a) - goal) ** 2 for a in s.names]
    loss = torch.stack(losses).mean()
    loss.backward()
    assert found.losses["critic_loss"] == pytest.approx(loss.item(), rel=1e-4)
    np.testing.assert_allclose(found.vector, flat_gradient(critic), atol=1e-4)


def test_a_critic_does_not_see_the_action_it_judges(rng):
    s = spec()
    learner = build(s)
    (team,) = learner.teams.values()
    b = rollout(s, rng)
    changed = s.action.joint(b.action.array.copy())
    changed["a1"][:] = changed["a1"][..., ::-1].copy()
    other = learner._moments(dataclasses.replace(b, action=changed))
    before, after = (team.worth(team.critic, now) for now in (learner._moments(b), other))
    torch.testing.assert_close(before[1], after[1])
    assert (before[0] != after[0]).any()


@pytest.mark.parametrize("options", [{}, {"share": True}, {"previous_actions": True}, {"epsilon": 0.3}])
def test_a_unit_asked_for_alone_gets_the_gradient_it_gets_among_all(options, rng):
    s = spec(alike=True)
    learner = build(s, **options)
    b = rollout(s, rng, dead=0.3, previous=True)
    together = learner.gradients(learner.units, b, round=4)
    for unit in learner.units:
        alone = learner.gradients((unit,), b, round=4)[unit].vector
        limit = 1e-6 * np.abs(together[unit].vector).max()
        np.testing.assert_allclose(alone, together[unit].vector, atol=limit)


def test_gradients_change_nothing_and_can_be_had_again(rng):
    learner = build(spec())
    b = rollout(spec(), rng, dead=0.3)
    before = learner.weights()["agent"]
    first, second = (learner.gradients(learner.units, b, round=4) for _ in range(2))
    for unit in learner.units:
        assert (first[unit].vector == second[unit].vector).all()
    assert all((array == learner.weights()["agent"][name]).all() for name, array in before.items())


def test_units_are_the_actors_and_the_critic_of_each_team():
    assert build(spec()).units == ("a0", "a1", "a2", "critic")
    two = build(spec(teams=("adversary", "agent", "agent")))
    assert two.units == ("a0", "a1", "a2", "adversary_critic", "agent_critic")
    assert build(spec(alike=True), share=True).units == ("actor", "critic")


def test_a_team_learns_from_its_own_reward_only(rng):
    s = spec(teams=("adversary", "agent", "agent"))
    learner = build(s)
    b = rollout(s, rng)
    richer = s.scalar.joint(b.reward.array + np.array([1, 0, 0], np.float32))
    before, after = (
        learner.gradients(learner.units, batch, round=0) for batch in (b, dataclasses.replace(b, reward=richer))
    )
    changed = {unit for unit in learner.units if (before[unit].vector != after[unit].vector).any()}
    assert changed == {"adversary_critic"}


def test_who_has_left_does_not_count(rng):
    s = spec()
    learner = build(s)
    b = rollout(s, rng, dead=0.5)
    noisy = s.action.joint(b.action.array.copy())
    for agent in s.names:
        gone = ~b.alive[agent]
        noisy[agent][gone] = np.roll(noisy[agent][gone], 1, axis=-1)
    before, after = (
        learner.gradients(learner.units, batch, round=0) for batch in (b, dataclasses.replace(b, action=noisy))
    )
    for unit in learner.units:
        np.testing.assert_array_equal(before[unit].vector, after[unit].vector)


def test_the_target_follows_every_so_many_updates(rng):
    s = spec()
    learner = build(s, target_every=3)
    (team,) = learner.teams.values()
    b = rollout(s, rng)
    same = []
    for round in range(6):
        learner.apply(learner.gradients(learner.units, b, round))
        same.append(bool((team.target == team.critic).all()))
    assert same == [False, False, True, False, False, True]


def test_epsilon_falls_in_a_line_and_is_a_floor_under_every_action_while_exploring(rng):
    s = spec()
    learner = build(s, epsilon=0.5, epsilon_end=0.1, epsilon_updates=4)
    assert [learner.epsilon(round) for round in (0, 1, 2, 4, 9)] == pytest.approx([0.5, 0.4, 0.3, 0.1, 0.1])
    for team in learner.teams.values():
        team.actor.mul_(50)  # sure of itself
    seen = s.obs.joint(np.repeat(rng.normal(size=(1, s.obs.width)).astype(np.float32), 4000, axis=0))
    exploring, sampling = (
        learner.act(seen, {}, rng=np.random.default_rng(1), mode=mode).action for mode in ("explore", "sample")
    )
    for agent in s.names:
        assert exploring[agent].mean(0).min() == pytest.approx(0.5 / s[agent].action.size, abs=0.03)
        assert sampling[agent].mean(0).max() > 0.999


@pytest.mark.parametrize("mode", ["explore", "sample", "greedy"])
def test_a_masked_action_is_never_taken(mode, rng):
    s = spec(masked=True)
    learner = build(s, epsilon=0.9, epsilon_end=0.9)
    mask = s.action.joint(rng.random((500, s.action.width)) < 0.5)
    for agent in s.names:
        mask[agent][~mask[agent].any(1), 0] = True
    acts = learner.act(s.obs.zeros(500), {}, rng=rng, mode=mode, mask=mask)
    assert not (acts.action.array.astype(bool) & ~mask.array).any()
    assert all((acts.action[agent].sum(1) == 1).all() for agent in s.names)


def test_the_last_action_is_carried_and_kept_beside_the_transition(rng):
    s = spec()
    learner = build(s, previous_actions=True)
    memory = Recent(Rollout(2), s, 4)
    obs, carry = s.obs.joint(rng.normal(size=(4, s.obs.width)).astype(np.float32)), {}
    flags = s.scalar.zeros(4, dtype=bool)
    taken = []
    for _ in range(2):
        acts = learner.act(obs, carry, rng=rng, mode="explore")
        carry = acts.carry
        taken.append(acts.action.array)
        step = Step(obs, s.scalar.zeros(4), flags, flags, s.scalar.joint(~flags.array), obs, flags.array[:, 0])
        memory.add(obs, None, acts, step)
    previous = memory.batch(0).extras["previous"]
    assert not previous[0].any()
    assert (previous[1] == taken[0]).all()


@pytest.mark.parametrize(
    ("agent", "options", "why"),
    [
        (AgentSpec("b", "agent", 2, ActionSpec("box", (1,), (0.0,), (1.0,))), {}, "b has Box actions"),
        (AgentSpec("b", "agent", 2, ActionSpec("discrete", (3, 4))), {}, "b makes 2 choices at once"),
        (AgentSpec("b", "agent", 2, ActionSpec("discrete", (3,))), {"share": True}, "see and do alike"),
    ],
)
def test_what_it_cannot_drive_it_says(agent, options, why):
    s = EnvSpec((AgentSpec("a", "agent", 4, ActionSpec("discrete", (3,))), agent))
    assert why in COMA(**options).drives(s)


def test_what_it_can_drive_it_takes():
    assert COMA().drives(spec()) is None
    assert COMA(share=True).drives(spec(alike=True)) is None
