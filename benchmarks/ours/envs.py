"""Steps of n copies of our own environments, in numpy on one thread, with random actions drawn before."""

from __future__ import annotations

from benchmarks.child import settings, tell
from marlctl.config import resolve
from marlctl.speed import env_speed


def main() -> None:
    """Step each scenario with each number of copies; ended episodes are reset in the same step."""
    asked = settings()
    for scenario in ("simple_tag", "simple_spread"):
        config = resolve({"run": {"algo": "maddpg", "scenario": scenario}})
        for n in asked["copies"]:
            env_speed(config, n, 0.05)  # warms up
            tell(env_speed(config, n, asked["seconds"]), setting={"scenario": scenario, "copies": n})


if __name__ == "__main__":
    main()
