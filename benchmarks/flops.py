"""How much an update of MADDPG computes, by one formula.

Counted are the products of matrices, a multiplication and an addition each. Not counted: activations,
losses, clipping, Adam and targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def _products(sizes: Sequence[int]) -> int:
    """One row through a network, forward."""
    return sum(2 * inputs * outputs for inputs, outputs in pairwise(sizes))


def update_flops(
    obs: Sequence[int], actions: Sequence[int], *, batch: int = 1024, hidden: tuple[int, ...] = (64, 64)
) -> int:
    """The classic update of every agent, from the sizes of what each sees and does.

    Each agent: its target actor and target critic forward; its critic forward and backward; its actor
    forward, the critic on the new action forward and backward to that action, and the actor backward.
    Backward is a product for the weights and one for the inputs, which the first layer does not need.
    """
    return batch * sum(_agent(o, a, sum(obs) + sum(actions), hidden) for o, a in zip(obs, actions, strict=True))


def _agent(obs: int, action: int, joint: int, hidden: tuple[int, ...]) -> int:
    actor, critic = _products((obs, *hidden, action)), _products((joint, *hidden, 1))
    actor_rest, critic_rest = _products((*hidden, action)), _products((*hidden, 1))
    targets = actor + critic
    critic_step = critic + critic + critic_rest
    to_action = critic_rest + 2 * action * hidden[0]
    actor_step = actor + critic + to_action + actor + actor_rest
    return targets + critic_step + actor_step


def least_flops(
    obs: Sequence[int], actions: Sequence[int], *, batch: int = 1024, hidden: tuple[int, ...] = (64, 64)
) -> int:
    """The same update when the actor's pass through the critic takes over what its own action leaves unchanged.

    Of the critic's first layer only the rows of the agent's own action are multiplied again.
    """
    joint = sum(obs) + sum(actions)
    saved = sum(2 * joint * hidden[0] - 2 * action * hidden[0] for action in actions)
    return update_flops(obs, actions, batch=batch, hidden=hidden) - batch * saved
