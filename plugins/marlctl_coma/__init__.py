"""COMA (Foerster et al., 2018): actors that learn from what their team would have got without their action.

The options are here, so that naming them costs no torch; the maths is in `learner`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from marlctl.options import option
from marlctl.records import EnvSpec, Rollout

if TYPE_CHECKING:
    from marlctl_coma.learner import COMALearner


@dataclass(frozen=True)
class COMA:
    """Counterfactual policy gradients: a critic for the team tells each actor what its own action was worth."""

    good_threads: ClassVar[int] = 1  # an update is so small that threads would wait for each other

    actor_lr: float = option(5e-4, "learning rate of the actors", above=0)
    critic_lr: float = option(5e-3, "learning rate of the critic", above=0)
    gamma: float = option(0.99, "discount of future rewards", low=0, high=1)
    td_lambda: float = option(
        0.8, "how much of the critic's goal are rewards to come instead of its own guess; 0 is TD(0)", low=0, high=1
    )
    rollout: int = option(5, "steps of every copy between two updates", low=1)
    target_every: int = option(10, "updates between two copies of the critic to its target", low=1)
    entropy: float = option(0.01, "weight of the policies' entropy in the actors' gain", low=0)
    epsilon: float = option(0.0, "part of the actions drawn uniformly while training, at the start", low=0, high=1)
    epsilon_end: float = option(0.0, "where epsilon ends", low=0, high=1)
    epsilon_updates: int = option(1000, "updates in which epsilon goes from one to the other", low=1)
    clip: float = option(5.0, "largest norm of each network's gradient; 0 does not clip", low=0)
    num_units: int = option(64, "width of the hidden layers", low=1)
    num_layers: int = option(2, "hidden layers", low=1, high=16)
    activation: Literal["relu", "tanh", "elu"] = option("relu", "between the layers")
    layer_norm: bool = option(False, "normalise the hidden layers")
    previous_actions: bool = option(False, "actors also see their own last action, the critic everybody's")
    share: bool = option(False, "one actor for all agents of a team, which is told whose turn it is")

    @property
    def memory(self) -> Rollout:
        return Rollout(self.rollout)

    def drives(self, spec: EnvSpec) -> str | None:
        """Why this algorithm cannot drive such agents, or None when it can."""
        for agent in spec.agents:
            if agent.action.kind != "discrete":
                return f"it compares all actions an agent could have taken, and {agent.name} has Box actions"
            if len(agent.action.parts) > 1:
                return f"{agent.name} makes {len(agent.action.parts)} choices at once, and it compares single ones"
        for team, members in spec.teams.items():
            if self.share and len({(spec[name].obs_size, spec[name].action) for name in members}) > 1:
                return f"algo.share needs agents that see and do alike, which those of team {team!r} do not"
        return None

    def build(self, spec: EnvSpec, *, seed: int, device: str) -> COMALearner:
        from marlctl_coma.learner import COMALearner  # noqa: PLC0415 (torch)

        return COMALearner(self, spec, seed=seed, device=device)
