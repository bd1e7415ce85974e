"""RESULTS.md, the JSON beside it and the figure, all from what was measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks import figure
from benchmarks.records import Results, write_json
from benchmarks.summary import RATE_KEPT, of_agents, rows
from benchmarks.text import Table, tables

HEAD = """# Results

Written by `python -m benchmarks report` from [results.json](results.json), which holds every single measurement. To
measure again, on an otherwise idle machine, from the root of the repository:

```
pip install -c constraints.txt -e '.[all,test]'
python -m benchmarks run --fresh --rounds 3    # about 25 minutes, once the peers are installed
python -m benchmarks report
```

![training beside peers, environments by copies, floating-point rate by agents](results.png)
"""

NOTES = """## How it was measured

- MADDPG has the classic cadence everywhere: batch 1024, one update of every agent per 100 environment steps, two
  hidden layers of 64 units. A step is one joint step of one environment.
- Contestants take turns, round after round, each time in a fresh process. Given are the median over the rounds and the
  smallest and largest value. The spread of a ratio is that of our slowest round beside the peer's fastest, and the
  other way round.
- Each peer has a virtual environment of its own, and is tried with one thread and with two; the better one counts.
  marlctl runs with its default settings, whatever they are.
- marlctl is `marlctl train` as typed, with metrics, evaluations and checkpoints. Its rate is taken from the run's own
  `timings.jsonl`, from 20 updates after its warm-up on. "Warm-up" is the time before a contestant is measured: random
  play, first calls, compilation where there is any. It is in no rate. marlctl and the peers that train compile
  nothing; JaxMARL compiles each program, in {compiled}, which is left out too.
- Floating-point work is that of the classic update (`benchmarks/flops.py`: 548 MFLOP for simple_tag). marlctl's actor
  takes over what its critic's first layer has computed already; the second rate leaves out that work.
- Environments get random actions, drawn beforehand except in JaxMARL, where drawing is part of the program. marlctl,
  mpe2 and JaxMARL reset ended episodes within the time; VMAS does not reset.
- The memory of a save is its peak above what was in use before (`VmHWM`).

## How the work of the peers differs

Ratios are indicative: no two libraries do quite the same.

- The plain loop draws from a ring of 100 000 rows that begins full; it neither logs, evaluates nor saves.
- AgileRL shares networks among the adversaries, has LayerNorm, a deeper actor and a smaller critic; continuous actions.
- BenchMARL's critics see one team, not both. On VMAS the dynamics are VMAS's own, not MPE's. Logging, evaluation and
  checkpoints are off. It collects 1 000 (PettingZoo) or 10 000 (VMAS) frames, then makes the updates due for them.
- XuanCe ships no MADDPG configuration for simple_tag, hence simple_spread, which has three agents; compare it with
  marlctl on simple_spread.
- The plain COMA has the cadence of the notebook our COMA set out from: one environment, an update every ten episodes.
  marlctl steps 32 copies, with an update every five steps of each, and its episodes soon are shorter.
- JaxMARL's and VMAS's scenarios are rewrites of MPE. VMAS's dynamics differ from mpe2's; JaxMARL's were not compared.
"""


def write(results: Results, folder: Path) -> None:
    """RESULTS.md, results.json and results.png in that folder."""
    write_json(folder / "results.json", results)
    figure.draw(results, folder / "results.png")
    (folder / "RESULTS.md").write_text(render(results), encoding="utf-8")


def render(results: Results) -> str:
    """The text of RESULTS.md."""
    shown = tables(results)
    parts = [HEAD, _machine(results), *map(_markdown, shown[:1]), _remarks(results), *map(_markdown, shown[1:])]
    parts += [NOTES.format(compiled=_compiled(results)), _versions(results)]
    return "\n".join(part for part in parts if part)


def _markdown(table: Table) -> str:
    cells = [list(table.columns), ["---"] * len(table.columns), *table.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    return f"## {table.title}\n\n" + "\n".join(lines) + "\n"


def _machine(results: Results) -> str:
    m = results.machine
    versions = ", ".join(f"{name} {version}" for name, version in m.get("versions", {}).items())
    settings = ", ".join(f"`{name}={value}`" for name, value in m.get("settings", {}).items()) or "none"
    return (
        f"Machine: {m.get('cpu')}; {m.get('cores')} cores, {m.get('memory_gb')} GB, no GPU used; Python "
        f"{m.get('python')}; {versions}; source at {m.get('commit')}. "
        f"Settings of the machine that libraries heed: {settings}.\n"
    )


def _remarks(results: Results) -> str:
    """The other goals, in a sentence each."""
    told = []
    found = of_agents(rows(results, "growth"))
    if {6, 48} <= found.keys():
        kinds = {"": "gflop_a_second", ", without what is reused": "least_gflop_a_second"}
        kept = [f"{found[48].facts[key] / found[6].facts[key]:.2f}{word}" for word, key in kinds.items()]
        told.append(f"The rate with 48 agents is {' (and '.join(kept)}) × that with 6; {RATE_KEPT} is the goal.")
    for row in rows(results, "whole"):
        if row.spread:
            told.append(f"The default run of 60 000 episodes ends after {row.spread.middle:,.0f} s.")
    return "\n".join(told) + "\n" if told else ""


def _compiled(results: Results) -> str:
    seconds = [m.facts["compile_seconds"] for m in results.measurements if "compile_seconds" in m.facts]
    return f"{min(seconds):.1f} to {max(seconds):.1f} s" if seconds else "a few seconds"


def _versions(results: Results) -> str:
    found: dict[str, str] = {}
    for m in results.measurements:
        if m.versions and not m.contestant.startswith(("marlctl", "plain", "mpe2")) and m.part in ("train", "envs"):
            found[m.contestant] = ", ".join(f"{name} {version}" for name, version in m.versions.items())
    lines = [f"- {name}: {versions}" for name, versions in found.items()]
    return "## Versions of the peers\n\n" + "\n".join(lines) + "\n" if lines else ""
