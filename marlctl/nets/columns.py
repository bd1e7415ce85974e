"""Which columns of a joint array each unit of a stack sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from marlctl.records import Layout


def columns(seen: Mapping[str, Sequence[str]], layouts: Sequence[Layout]) -> Tensor:
    """For each unit, which columns of the layouts' arrays side by side it takes; padding points past the end."""
    rows: list[list[int]] = [[] for _ in seen]
    offset = 0
    for layout in layouts:
        ids = layout.joint(np.arange(layout.width) + offset)
        for row, names in zip(rows, seen.values(), strict=True):
            row.extend(np.concatenate([ids[name] for name in names]).tolist())
        offset += layout.width
    longest = max(map(len, rows))
    return torch.tensor([row + [offset] * (longest - len(row)) for row in rows])


def take(joint: Tensor, columns: Tensor) -> Tensor:
    """Columns of (rows, width) as each unit sees them, (units, rows, columns); one past the end is zeros."""
    wide = torch.nn.functional.pad(joint, (0, 1))
    return wide.index_select(1, columns.flatten()).view(-1, *columns.shape).transpose(0, 1)
