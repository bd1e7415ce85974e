"""Real runs that differ in one thing: the agents of simple_spread, the copies, or the threads."""

from __future__ import annotations

from typing import Any

from benchmarks.child import settings, tell
from benchmarks.flops import least_flops, update_flops
from marlctl.config import Config, resolve
from marlctl.opening import open_env
from marlctl.speed import FOREVER, train_speed

ROWS = 4_096  # in the ring: with 48 agents a row is 112 kB


def config_of(run: dict[str, Any], env: dict[str, Any]) -> Config:
    """A run whose ring is small and full at once."""
    algo = {"warmup": 1_024, "capacity": ROWS}
    return resolve({"run": {"algo": "maddpg", "steps": FOREVER, **run}, "env": env, "algo": algo})


def agents(n: int, seconds: float) -> None:
    """One update of all agents, and the floating-point rate that it reaches."""
    # Many copies, so that the time between two updates is short.
    config = config_of({"scenario": "simple_spread", "num_envs": 50}, {"N": n})
    env, spec = open_env(config, 1)
    env.close()
    sizes = [a.obs_size for a in spec.agents], [a.action.size for a in spec.agents]
    result = train_speed(config, seconds)
    ms = result["update_ms"]
    work, least = update_flops(*sizes), least_flops(*sizes)
    facts = {"mflop": work / 1e6, "gflop_a_second": work / ms / 1e6, "least_gflop_a_second": least / ms / 1e6}
    tell(ms, "ms", {"what": "agents", "agents": n}, **facts)


def training(what: str, value: int, run: dict[str, Any], seconds: float) -> None:
    """Steps of simple_tag a second, acting, playing and learning."""
    result = train_speed(config_of({"scenario": "simple_tag", **run}, {}), seconds)
    facts = {"update_ms": result["update_ms"], "time": result["time"]}
    tell(result["training_steps_a_second"], setting={"what": what, what: value}, **facts)


def main() -> None:
    """What the settings name: agents, copies or threads."""
    asked = settings()
    for n in asked.get("agents", ()):
        agents(n, asked["seconds"])
    for n in asked.get("copies", ()):
        training("copies", n, {"num_envs": n}, asked["seconds"])
    for n in asked.get("thread_counts", ()):
        training("threads", n, {"threads": n}, asked["seconds"])


if __name__ == "__main__":
    main()
