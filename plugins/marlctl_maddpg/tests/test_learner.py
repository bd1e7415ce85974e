"""One update against the formulas written out agent by agent, and what `gradients` and `act` promise."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from marlctl.copies import make_batch
from marlctl.memory import Ring
from marlctl.plugins import environment
from marlctl.policies import Random
from marlctl.records import ActionSpec, AgentSpec, Batch, EnvSpec, Replay
from marlctl.rollout import Player
from marlctl.testing.networks import as_torch
from marlctl_maddpg import DDPG, MADDPG


def spec(kind="discrete"):
    """Agents that differ in what they see and do."""
    if kind == "discrete":
        actions = [ActionSpec("discrete", (5,)), ActionSpec("discrete", (3, 4)), ActionSpec("discrete", (2,))]
    else:
        actions = [ActionSpec("box", (2,), (-1.0, -2.0), (1.0, 2.0)), ActionSpec("box", (1,), (0.0,), (1.0,))]
    teams = ("adversary", "agent", "agent")
    return EnvSpec(tuple(AgentSpec(f"a{i}", teams[i], 3 + i, action) for i, action in enumerate(actions)))


def batch(spec, rng, rows=32, dead=False):
    acts = Random(spec).act(spec.obs.zeros(rows), {}, rng=rng, mode="sample")

    def numbers():
        return spec.obs.joint(rng.normal(size=(rows, spec.obs.width)).astype(np.float32))

    def flags(chance):
        return spec.scalar.joint(rng.random((rows, spec.scalar.width)) < chance)

    reward = spec.scalar.joint(rng.normal(size=(rows, spec.scalar.width)).astype(np.float32))
    alive = flags(0.6 if dead else 2)
    return Batch(numbers(), acts.action, reward, numbers(), flags(0.3), flags(0.2), alive)


def flat_gradient(network, limit):
    parts = []
    for p in network.parameters():
        g = p.grad.T if p.ndim == 2 else p.grad
        parts.append((g * min(1.0, limit / g.norm().item())).reshape(-1))
    return torch.cat(parts).numpy()


@pytest.mark.parametrize("algo", [MADDPG, DDPG])
@pytest.mark.parametrize("dead", [False, True])
def test_box_gradients_are_those_of_the_paper_written_out_for_each_agent(algo, dead, rng):
    """Deterministic actors: no noise, so a plain implementation must give the same numbers."""
    s = spec("box")
    learner = algo(num_units=8, gamma=0.9).build(s, seed=3, device="cpu")
    for name in ("target_actor", "target_critic"):  # so that a swap with the online network shows
        getattr(learner, name).mul_(0.7)
    b = batch(s, rng, dead=dead)
    found = learner.gradients(learner.units, b, round=0)
    for i, agent in enumerate(s.names):
        actor = as_torch(learner.actor_shape, learner.actor[i])
        critic = as_torch(learner.critic_shape, learner.critic[i])
        targets = [as_torch(learner.actor_shape, learner.target_actor[j]) for j in range(2)]
        target_critic = as_torch(learner.critic_shape, learner.target_critic[i])

        def look(x, agent):
            seen = torch.tensor(x[agent])
            return nn.functional.pad(seen, (0, learner.actor_shape.sizes[0] - seen.shape[1]))

        def squash(out, agent):
            low, high = (torch.tensor(b) for b in (s[agent].action.low, s[agent].action.high))
            return low + (high - low) * (torch.tanh(out[:, : s[agent].action.size]) + 1) / 2

        def judge(network, obs, actions, agent=agent):
            who = [agent] if algo is DDPG else s.names
            x = torch.cat([*(torch.tensor(obs[w]) for w in who), *(actions[w] for w in who)], 1)
            return network(nn.functional.pad(x, (0, learner.critic_shape.sizes[0] - x.shape[1])))[:, 0]

        alive = torch.tensor(b.alive[agent]).float()
        with torch.no_grad():
            nexts = {w: squash(t(look(b.next_obs, w)), w) for w, t in zip(s.names, targets, strict=True)}
            y = torch.tensor(b.reward[agent]) + 0.9 * (1 - torch.tensor(b.terminated[agent]).float()) * judge(
                target_critic, b.next_obs, nexts
            )
        taken = {w: torch.tensor(b.action[w]) for w in s.names}
        critic_loss = ((judge(critic, b.obs, taken) - y) ** 2 * alive).sum() / alive.sum()
        critic_loss.backward()
        critic_grad = flat_gradient(critic, 0.5)
        out = actor(look(b.obs, agent))
        value = judge(critic, b.obs, {**taken, agent: squash(out, agent)})
        penalty = 1e-3 * (out[:, : s[agent].action.size] ** 2).mean(1)
        actor_loss = ((penalty - value) * alive).sum() / alive.sum()
        actor.zero_grad()
        actor_loss.backward()
        expected = np.concatenate([flat_gradient(actor, 0.5), critic_grad])
        assert found[agent].losses["critic_loss"] == pytest.approx(critic_loss.item(), rel=1e-5)
        assert found[agent].losses["actor_loss"] == pytest.approx(actor_loss.item(), rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(found[agent].vector, expected, atol=2e-6)


@pytest.mark.parametrize("algo", [MADDPG, DDPG])
def test_discrete_gradients_are_straight_through_gumbel_written_out_for_each_agent(algo, rng):
    """The noise is taken from the learner; everything else is done again, agent by agent."""
    s = EnvSpec(
        tuple(AgentSpec(f"a{i}", "agent", 3 + i, ActionSpec("discrete", (4 - i,))) for i in range(2)), masked=True
    )
    learner = algo(num_units=8, gamma=0.9).build(s, seed=3, device="cpu")
    learner.target_actor.mul_(0.7), learner.target_critic.mul_(0.7)
    b = batch(s, rng)
    open_ = [s.action.joint(rng.random((32, s.action.width)) < 0.7) for _ in range(2)]
    for mask in open_:
        for name in s.names:
            mask[name][:, 0] = True
    b = dataclasses.replace(b, mask=open_[0], next_mask=open_[1])
    noise = {purpose: learner._noise(slice(None), 32, purpose, 7) for purpose in ("actor", "target")}
    found = learner.gradients(learner.units, b, round=7)

    def act(network, obs, name, purpose, mask):
        """One-hot with the gradient of the softmax."""
        i, size = s.names.index(name), s[name].action.size
        seen = torch.tensor(obs[name])
        out = network(nn.functional.pad(seen, (0, learner.actor_shape.sizes[0] - seen.shape[1])))[:, :size]
        logits = out.masked_fill(~torch.tensor(mask[name]), -1e9) + noise[purpose][i][:, :size]
        soft = torch.softmax(logits, 1)
        return out, nn.functional.one_hot(logits.argmax(1), size) + soft - soft.detach()

    for i, agent in enumerate(s.names):
        actor, critic = (
            as_torch(learner.actor_shape, learner.actor[i]),
            as_torch(learner.critic_shape, learner.critic[i]),
        )
        target = as_torch(learner.critic_shape, learner.target_critic[i])

        def judge(network, obs, actions, agent=agent):
            who = [agent] if algo is DDPG else s.names
            x = torch.cat([*(torch.tensor(obs[w]) for w in who), *(actions[w] for w in who)], 1)
            return network(nn.functional.pad(x, (0, learner.critic_shape.sizes[0] - x.shape[1])))[:, 0]

        with torch.no_grad():
            actors = {w: as_torch(learner.actor_shape, learner.target_actor[j]) for j, w in enumerate(s.names)}
            nexts = {w: act(actors[w], b.next_obs, w, "target", b.next_mask)[1] for w in s.names}
            keep = 1 - torch.tensor(b.terminated[agent]).float()
            y = torch.tensor(b.reward[agent]) + 0.9 * keep * judge(target, b.next_obs, nexts)
        taken = {w: torch.tensor(b.action[w]) for w in s.names}
        critic_loss = ((judge(critic, b.obs, taken) - y) ** 2).mean()
        critic_loss.backward()
        critic_gradient = flat_gradient(critic, 0.5)
        out, mine = act(actor, b.obs, agent, "actor", b.mask)
        actor_loss = -judge(critic, b.obs, {**taken, agent: mine}).mean() + 1e-3 * (out**2).mean()
        actor_loss.backward()
        expected = np.concatenate([flat_gradient(actor, 0.5), critic_gradient])
        assert found[agent].losses["actor_loss"] == pytest.approx(actor_loss.item(), rel=1e-5, abs=1e-6)
        np.testing.assert_allclose(found[agent].vector, expected, atol=2e-6)


@pytest.mark.parametrize("kind", ["discrete", "box"])
@pytest.mark.parametrize(
    "algo", [MADDPG(num_units=16), DDPG(num_units=16), MADDPG(num_units=16, adv_policy="ddpg", layer_norm=True)]
)
def test_a_unit_alone_has_the_gradient_it_has_in_the_stack(algo, kind, rng):
    learner = algo.build(spec(kind), seed=1, device="cpu")
    b = batch(spec(kind), rng)
    together = learner.gradients(learner.units, b, round=5)
    for unit in learner.units:
        alone = learner.gradients([unit], b, round=5)[unit].vector
        assert np.abs(alone - together[unit].vector).max() <= 1e-6 * np.abs(together[unit].vector).max()


def test_gradients_change_nothing_and_come_out_the_same_again(rng):
    learner = MADDPG(num_units=8).build(spec(), seed=1, device="cpu")
    b = batch(spec(), rng)
    before = {name: value.copy() for name, value in learner.weights().items()}
    held = {name: getattr(b, name).array.copy() for name in ("obs", "action", "reward", "next_obs")}
    first, second = (learner.gradients(learner.units, b, round=2) for _ in range(2))
    other = learner.gradients(learner.units, b, round=3)
    for unit in learner.units:
        assert np.array_equal(first[unit].vector, second[unit].vector)
        assert not np.array_equal(first[unit].vector, other[unit].vector)  # another round draws other actions
    assert all(np.array_equal(before[name], value) for name, value in learner.weights().items())
    assert all(np.array_equal(held[name], getattr(b, name).array) for name in held)


def test_no_tensor_of_a_gradient_is_longer_than_the_clip(rng):
    s = spec()
    learner = MADDPG(num_units=8, clip=0.01).build(s, seed=1, device="cpu")
    for gradient in learner.gradients(learner.units, batch(s, rng), round=0).values():
        norms = [np.linalg.norm(gradient.vector[place]) for place in gradient.parts.values()]
        assert max(norms) == pytest.approx(0.01, rel=1e-4)
        assert sum(len(gradient.vector[place]) for place in gradient.parts.values()) == len(gradient.vector)


def test_targets_begin_as_copies_and_follow_slowly(rng):
    s = spec()
    learner = MADDPG(num_units=8, tau=0.25).build(s, seed=1, device="cpu")
    begin = learner.weights()
    assert np.array_equal(begin["actor"], begin["target_actor"])
    assert np.array_equal(begin["critic"], begin["target_critic"])
    learner.apply(learner.gradients(learner.units, batch(s, rng), round=0))
    after = learner.weights()
    for name in ("actor", "critic"):
        expected = begin[f"target_{name}"] + 0.25 * (after[name] - begin[name])
        np.testing.assert_allclose(after[f"target_{name}"], expected, atol=1e-6)


def test_the_first_adam_step_is_the_learning_rate_in_each_direction(rng):
    s = spec()
    learner = MADDPG(num_units=8, actor_lr=0.003, critic_lr=0.02).build(s, seed=1, device="cpu")
    begin = learner.weights()
    gradients = learner.gradients(learner.units, batch(s, rng), round=0)
    learner.apply(gradients)
    for name, rate in (("actor", 0.003), ("critic", 0.02)):
        moved = learner.weights()[name] - begin[name]
        places = [place for part, place in gradients["a0"].parts.items() if part.startswith(name)]
        gradient = np.stack([np.concatenate([g.vector[p] for p in places]) for g in gradients.values()])
        felt = np.abs(gradient) > 1e-5
        np.testing.assert_allclose(moved[felt], -rate * np.sign(gradient[felt]), rtol=2e-3)


@pytest.mark.parametrize("mode", ["explore", "sample", "greedy"])
def test_discrete_actions_are_one_hot_in_each_part(mode, rng):
    s = spec()
    learner = MADDPG().build(s, seed=0, device="cpu")
    obs = s.obs.joint(rng.normal(size=(50, s.obs.width)).astype(np.float32))
    acts = learner.act(obs, {}, rng=rng, mode=mode)
    for agent in s.agents:
        for part in np.split(acts.action[agent.name], np.cumsum(agent.action.parts)[:-1], 1):
            assert (part.sum(1) == 1).all() and set(np.unique(part)) <= {0.0, 1.0}


def test_greedy_play_draws_no_random_numbers_and_exploring_follows_the_policys_chances(rng):
    s = EnvSpec((AgentSpec("a0", "agent", 2, ActionSpec("discrete", (4,))),))
    learner = MADDPG().build(s, seed=0, device="cpu")
    obs = s.obs.joint(np.tile(np.array([0.3, -2.0], np.float32), (20000, 1)))
    state = rng.bit_generator.state
    greedy = learner.act(obs, {}, rng=rng, mode="greedy").action.array
    assert rng.bit_generator.state == state and (greedy == greedy[0]).all()
    with torch.no_grad():
        logits = learner.actor_shape(learner.actor, torch.tensor(obs.array[:1])[None])[0, 0]
    drawn = learner.act(obs, {}, rng=rng, mode="explore").action.array.mean(0)
    np.testing.assert_allclose(drawn, torch.softmax(logits, 0).numpy(), atol=0.015)


def test_acting_for_some_agents_is_acting_for_all(rng):
    s = spec()
    learner = MADDPG().build(s, seed=0, device="cpu")
    obs = s.obs.joint(rng.normal(size=(6, s.obs.width)).astype(np.float32))
    every = learner.act(obs, {}, rng=rng, mode="greedy").action
    some = learner.act({"a1": obs["a1"]}, {}, rng=rng, mode="greedy").action
    assert np.array_equal(every["a1"], some["a1"])


def test_a_masked_action_is_never_taken(rng):
    s = spec()
    learner = MADDPG().build(EnvSpec(s.agents, masked=True), seed=0, device="cpu")
    obs = s.obs.joint(rng.normal(size=(200, s.obs.width)).astype(np.float32))
    mask = s.action.joint(rng.random((200, s.action.width)) < 0.5)
    for agent in s.agents:  # at least one action of each part stays open
        for start in np.cumsum((0, *agent.action.parts[:-1])):
            mask[agent.name][:, start] = True
    for mode in ("explore", "greedy"):
        acts = learner.act(obs, {}, rng=rng, mode=mode, mask=mask)
        assert not (acts.action.array * ~mask.array).any()


@pytest.mark.parametrize("noise", ["gaussian", "ou"])
def test_box_noise_stays_in_bounds_decays_and_drifts_only_when_asked(noise, rng):
    s = spec("box")
    learner = MADDPG(noise=noise, noise_scale=0.5, noise_decay=0.5, noise_floor=0.0).build(s, seed=0, device="cpu")
    obs = s.obs.zeros(4)
    plain = learner.act(obs, {}, rng=rng, mode="greedy").action.array
    acts = learner.act(obs, {}, rng=rng, mode="explore")
    low, high, _ = learner.bounds
    assert (acts.action.array >= low).all() and (acts.action.array <= high).all()
    assert np.abs(acts.action.array - plain).max() > 0.01
    assert ("drift" in acts.carry) == (noise == "ou")
    for _ in range(40):
        late = learner.act(obs, {}, rng=rng, mode="explore")
    np.testing.assert_allclose(late.action.array, plain, atol=1e-6)


def test_soft_actions_are_the_vector_itself_in_each_part(rng):
    parts = ActionSpec("box", (5, 3), (0.0,) * 8, (1.0,) * 8)
    s = EnvSpec((AgentSpec("a0", "agent", 4, parts), AgentSpec("a1", "agent", 4, parts)))
    learner = MADDPG(soft_actions=True).build(s, seed=0, device="cpu")
    acts = learner.act(s.obs.zeros(7), {}, rng=rng, mode="explore").action["a0"]
    np.testing.assert_allclose(acts[:, :5].sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(acts[:, 5:].sum(1), 1, rtol=1e-5)
    assert ((acts > 0) & (acts < 1)).all()


@pytest.mark.parametrize(
    ("options", "agent", "reason"),
    [
        (MADDPG(soft_actions=True), AgentSpec("a", "t", 2, ActionSpec("discrete", (5,))), "continuous_actions"),
        (MADDPG(), AgentSpec("a", "t", 2, ActionSpec("box", (1,), (-np.inf,), (1.0,))), "bounds"),
        (MADDPG(soft_actions=True), AgentSpec("a", "t", 2, ActionSpec("box", (1,), (-1.0,), (1.0,))), "[0, 1]"),
    ],
)
def test_agents_it_cannot_drive_are_refused_with_the_reason(options, agent, reason):
    assert reason in (options.drives(EnvSpec((agent,))) or "")


@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        ("simple_tag", {}),
        ("simple_reference", {"factored_actions": True}),
        ("simple_world_comm", {"continuous_actions": True}),
    ],
)
def test_a_few_updates_on_a_real_scenario_stay_finite(scenario, options):
    env = make_batch(environment(scenario)(**options), 4)
    learner = MADDPG(num_units=16).build(env.spec, seed=0, device="cpu")
    ring = Ring(Replay(400, 64, 100, 10), env.spec, seed=0)
    player = Player(env, learner, seed=0, mode="explore")
    for turn in range(60):
        played, _ = player.step()
        ring.add(played.obs, played.mask, played.acts, played.step)
        if ring.due(4 * turn, 4 * turn + 4):
            learner.apply(learner.gradients(learner.units, ring.batch(turn), turn))
    assert learner.actor_adam.steps > 5
    assert all(np.isfinite(array).all() for array in learner.weights().values())
