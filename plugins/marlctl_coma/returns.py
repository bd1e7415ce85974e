"""What a critic should have said: rewards to come, and its own guess where they end."""

from __future__ import annotations

import numpy as np

from marlctl.records import Array


def lambda_returns(
    reward: Array, value: Array, *, over: Array, cut: Array, after: Array, discount: float, trace: float
) -> Array:
    """The goals of TD(lambda), all arrays (time, copies).

    `value` is the guess at each step; `over` says that nothing follows a step, `cut` that what follows
    is not known and guessed to be `after`. The last step must be one or the other.
    """
    goal = np.empty_like(reward)
    ahead = after[-1]
    for t in reversed(range(len(reward))):
        goal[t] = reward[t] + discount * np.where(over[t], 0, np.where(cut[t], after[t], ahead))
        ahead = (1 - trace) * value[t] + trace * goal[t]
    return goal
