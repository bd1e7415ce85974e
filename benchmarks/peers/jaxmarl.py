"""JaxMARL: steps of n environments under vmap and scan, with random actions and resets in the same program."""

from __future__ import annotations

import warnings
from time import perf_counter

import jax
import jaxmarl

from benchmarks.child import repeat, settings, tell

SCENARIOS = {"simple_tag": "MPE_simple_tag_v3", "simple_spread": "MPE_simple_spread_v3"}
LENGTHS = {1: 4_000, 32: 1_000, 256: 250, 4096: 25}  # steps of one scan


def program(env, n, length):
    """A compiled scan over that many steps of n copies."""

    def step(carry, _):
        key, state = carry
        key, draw, move = jax.random.split(key, 3)
        action = {
            agent: jax.vmap(env.action_space(agent).sample)(jax.random.split(jax.random.fold_in(draw, i), n))
            for i, agent in enumerate(env.agents)
        }
        obs, state, reward, _, _ = jax.vmap(env.step)(jax.random.split(move, n), state, action)
        # Everything is used, so that the compiler cannot leave any of it out.
        used = sum(x.mean() for x in reward.values()) + sum(x.sum() * 0 for x in obs.values())
        return (key, state), used

    return jax.jit(lambda key, state: jax.lax.scan(step, (key, state), None, length))


def main() -> None:
    """Step each scenario with each number of copies."""
    warnings.filterwarnings("ignore")
    asked = settings()
    for scenario, name in SCENARIOS.items():
        env = jaxmarl.make(name)
        for n in asked["copies"]:
            key = jax.random.PRNGKey(0)
            _, state = jax.vmap(env.reset)(jax.random.split(key, n))
            scan = program(env, n, LENGTHS[n])

            def block(scan=scan, key=key, state=state):
                jax.block_until_ready(scan(key, state))

            begin = perf_counter()
            block()
            compile_seconds = round(perf_counter() - begin, 2)
            rate = repeat(block, n * LENGTHS[n], asked["seconds"])
            tell(rate, setting={"scenario": scenario, "copies": n}, compile_seconds=compile_seconds)


if __name__ == "__main__":
    main()
