"""A window for scenarios that draw pictures and have none of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marlctl.errors import ConfigError
from marlctl.records import Array

WIDE = 700  # pixels; smaller pictures are shown larger


class Window:
    """The pictures of an environment, as PettingZoo's `render_mode` wants them: handed out, shown here, or none.

    It shows one at a time, and opens with the first.
    """

    def __init__(self, title: str, render_mode: str | None) -> None:
        self._title, self._mode = title, render_mode
        self._screen: Any = None

    def render(self, draw: Callable[[], Array]) -> Array | None:
        """What an environment's `render` gives."""
        if self._mode is None:
            return None
        picture = draw()
        if self._mode == "rgb_array":
            return picture
        self.show(picture)
        return None

    def refresh(self, draw: Callable[[], Array]) -> None:
        """After a reset or a step: who watches sees it without asking."""
        if self._mode == "human":
            self.show(draw())

    def show(self, picture: Array) -> None:
        """Show a picture (height, width, 3)."""
        pygame = _pygame()
        times = max(1, WIDE // picture.shape[1])
        size = (times * picture.shape[1], times * picture.shape[0])
        if self._screen is None:
            pygame.display.init()
            self._screen = pygame.display.set_mode(size)
            pygame.display.set_caption(self._title)
        surface = pygame.surfarray.make_surface(np.ascontiguousarray(picture.swapaxes(0, 1)))
        self._screen.blit(pygame.transform.scale(surface, size), (0, 0))
        pygame.event.pump()  # without it the desktop thinks that the window hangs
        pygame.display.flip()

    def close(self) -> None:
        """Close the window, if it ever opened."""
        if self._screen is not None:
            _pygame().display.quit()
            self._screen = None


def _pygame() -> Any:
    try:
        import pygame  # noqa: PLC0415 (only who opens a window pays for it)
    except ImportError as error:
        raise ConfigError(f"a window needs pygame, which is missing ({error}): pip install pygame-ce") from error
    return pygame
