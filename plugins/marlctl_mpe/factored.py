"""Move and message as two choices of one action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.spaces import MultiDiscrete
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper


class Factored(BaseParallelWrapper):  # type: ignore[misc] # pettingzoo is untyped to us
    """Agents that move and speak choose `[move, message]` where MPE2 has `move + 5 * message`."""

    def __init__(self, env: ParallelEnv[str, Any, Any], parts: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__(env)
        self._moves = {agent: sizes[0] for agent, sizes in parts.items() if len(sizes) > 1}
        self._spaces = {agent: MultiDiscrete(parts[agent]) for agent in self._moves}

    def action_space(self, agent: str) -> Any:
        return self._spaces[agent] if agent in self._spaces else self.env.action_space(agent)

    def step(self, actions: dict[str, Any]) -> Any:
        return self.env.step({agent: self._joined(agent, action) for agent, action in actions.items()})

    def _joined(self, agent: str, action: Any) -> Any:
        if agent not in self._moves:
            return action
        move, message = action
        return move + self._moves[agent] * message
