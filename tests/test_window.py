"""The window that scenarios without one of their own are shown in."""

import sys

import numpy as np
import pytest

from marlctl.errors import ConfigError
from marlctl.window import WIDE, Window


def picture(width=100, height=40):
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[0, 0] = 255, 0, 0
    return pixels


def test_a_picture_is_shown_the_right_way_up_and_large(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    window = Window("a game", "human")
    window.refresh(picture)
    assert window.render(picture) is None
    screen = pygame.display.get_surface()
    assert screen.get_size() == (WIDE, 280)
    assert screen.get_at((3, 3))[:3] == (255, 0, 0)
    assert screen.get_at((3, 270))[:3] == screen.get_at((690, 3))[:3] == (0, 0, 0)
    assert pygame.display.get_caption()[0] == "a game"
    window.close()
    assert not pygame.display.get_init()


def test_a_window_that_never_opened_closes_without_pygame(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    window = Window("a game", "human")
    window.close()
    with pytest.raises(ConfigError, match="pip install pygame-ce"):
        window.show(picture())


@pytest.mark.parametrize("mode", [None, "rgb_array"])
def test_without_a_window_a_picture_is_drawn_only_for_who_asks(mode, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    drawn = []

    def draw():
        drawn.append(picture())
        return drawn[-1]

    window = Window("a game", mode)
    window.refresh(draw)
    assert not drawn
    assert window.render(draw) is (drawn[0] if mode else None)
    assert len(drawn) == (1 if mode else 0)
