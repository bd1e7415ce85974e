"""The numbers of the game. Lengths are in units of the court, times in seconds.

What Unity's public tennis scripts fix is taken from them; what they leave to a scene that is not public
was decided once, by what is plausible, and before anything was trained.
"""

from __future__ import annotations

from math import cos, radians, sin

# -- from the scripts ----------------------------------------------------------------------------

SPEED = 10.0  # of a racket at action 1: 0.2 a physics step, at 50 steps a second
JUMP = 6.0  # upward speed of a racket that jumps off the ground
REST = -1.5  # height of a racket that stands on the ground
NEAREST = -1.0  # no racket comes closer to the net, which is at 0
START = (6.0, 8.0)  # how far from the net a racket begins
DROP = (4.0, 11.0)  # how far from the net the ball falls, on either side
DROP_HEIGHT = 6.0
BALL_SPEED = 9.0  # the most a ball can have, in x and in y
OVER = 0.1  # for who hit the ball over the net
MISS = -0.01  # for who is at fault
ANGLE = radians(55)  # of a racket, from the vertical: the default of ML-Agents' parameter `angle`
BALL_RADIUS = 0.25  # ML-Agents' parameter `scale` is the ball's diameter, 0.5
GRAVITY = 9.81  # Unity's own
PHYSICS_STEP = 0.02  # Unity's own: the 50 steps a second above

# -- decided here --------------------------------------------------------------------------------

# ML-Agents' usual decision period. Trained players of the Unity build are reported to reach 2.6 in 1000 steps,
# a hit every 19 steps: a second and a half or two for a flight over the court, and no other period gives that.
PHYSICS_STEPS = 5
DECISION = PHYSICS_STEPS * PHYSICS_STEP

FLOOR = -2.0  # the racket's centre rests half a unit above it
HALF_RACKET = (REST - FLOOR) / cos(ANGLE)  # so that its lower edge just touches the ground
COURT = 14.0  # from the net to the wall: the farthest drop, and room for a racket behind it
REARMOST = -(COURT - 1)  # a racket, whose ends reach 0.7 to either side, does not enter the wall
NET_TOP = FLOOR + 1.0  # a real net is 1/26 of the court's length, and this court is 28 long
RESTITUTION = 0.85  # a real ball on the strings of a held racket keeps so much of its speed

# A racket's face looks forward and up, so a ball that falls on it flies towards the net.
NORMAL = (cos(ANGLE), sin(ANGLE))
ALONG = (-sin(ANGLE), cos(ANGLE))  # from its lower front end to its upper rear end

LENGTH = 1000  # steps of an episode: where most who train on the Unity build cut it
FRAMES = 3  # that a player sees, the newest last
