"""MADDPG and DDPG (Lowe et al., 2017): decentralised actors, a critic for each agent.

The options are here, so that naming them costs no torch; the maths is in `learner`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from marlctl.options import option
from marlctl.records import EnvSpec, Replay

if TYPE_CHECKING:
    from marlctl_maddpg.learner import MADDPGLearner

Policy = Literal["maddpg", "ddpg"]


@dataclass(frozen=True)
class MADDPG:
    """Centralised critics that see every agent, actors that see only their own."""

    lr: float = option(1e-2, "learning rate of actors and critics", above=0)
    actor_lr: float | None = option(None, "learning rate of the actors, where it differs from lr", above=0)
    critic_lr: float | None = option(None, "learning rate of the critics, where it differs from lr", above=0)
    gamma: float = option(0.95, "discount of future rewards", low=0, high=1)
    tau: float = option(0.01, "how far a target moves towards its network at each update", above=0, high=1)
    clip: float = option(0.5, "largest norm of each tensor's gradient; 0 does not clip", low=0)
    batch_size: int = option(1024, "joint transitions an update", low=1)
    capacity: int = option(1_000_000, "joint transitions kept (less when the budget is shorter)", low=1)
    warmup: int = option(25_600, "transitions before the first update", low=1)
    update_every: int = option(100, "environment steps for each update of every agent", low=1)
    num_units: int = option(64, "width of the hidden layers", low=1)
    num_layers: int = option(2, "hidden layers", low=1, high=16)
    activation: Literal["relu", "tanh", "elu"] = option("relu", "between the layers")
    layer_norm: bool = option(
        False, "normalise the hidden layers; batch norm is not on offer, it would change state inside a gradient"
    )
    logit_penalty: float = option(1e-3, "weight of the mean squared actor output in its loss", low=0)
    good_policy: Policy = option("maddpg", "critics of the agents that are no adversaries")
    adv_policy: Policy = option("maddpg", "critics of the adversaries")
    soft_actions: bool = option(False, "execute the soft action vector as openai/maddpg did (Box actions in [0, 1])")
    noise: Literal["gaussian", "ou"] = option("gaussian", "exploration of Box actions: independent, or drifting")
    noise_scale: float = option(0.1, "standard deviation of each draw, as a part of half the action's range", low=0)
    noise_decay: float = option(1.0, "factor on the noise for each environment step", above=0, high=1)
    noise_floor: float = option(0.0, "where the decay of the noise ends", low=0)

    @property
    def memory(self) -> Replay:
        return Replay(self.capacity, self.batch_size, max(self.warmup, self.batch_size), self.update_every)

    def drives(self, spec: EnvSpec) -> str | None:
        """Why this algorithm cannot drive such agents, or None when it can."""
        for agent in spec.agents:
            if agent.action.kind == "discrete":
                if self.soft_actions:
                    return f"algo.soft_actions needs Box actions; for {agent.name} try env.continuous_actions=true"
                continue
            bounds = (*agent.action.low, *agent.action.high)
            if any(abs(bound) == float("inf") for bound in bounds):
                return f"{agent.name} has actions without bounds, and a squashed actor needs bounds"
            if self.soft_actions and (min(agent.action.low) < 0 or max(agent.action.high) > 1):
                return f"algo.soft_actions gives numbers in [0, 1], which {agent.name}'s actions are not"
        return None

    def build(self, spec: EnvSpec, *, seed: int, device: str) -> MADDPGLearner:
        from marlctl_maddpg.learner import MADDPGLearner  # noqa: PLC0415 (torch)

        return MADDPGLearner(self, spec, seed=seed, device=device)


@dataclass(frozen=True)
class DDPG(MADDPG):
    """Each agent for itself: its critic sees what the agent sees and does."""

    good_policy: Policy = option("ddpg", "critics of the agents that are no adversaries")
    adv_policy: Policy = option("ddpg", "critics of the adversaries")
