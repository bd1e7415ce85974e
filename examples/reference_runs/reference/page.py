"""The page that tells of the results: Markdown, made from the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import get_args

from reference.intervals import Estimate, Verdict
from reference.published import NOT_COMPARED, OTHER_WORLD
from reference.systems import Corridor, Rally, Systems
from reference.tables import Beside, Compared, Meeting, Rise, Tables

WORDS = {
    "touches": "touches an episode",
    "agent_success": "agents at the target in the end, %",
    "adversary_success": "adversary at the target in the end, %",
    "agent_ever": "agents ever there, %",
    "adversary_ever": "adversary ever there, %",
}
BOTH_SIDES = "this depends on both sides, so a lower number is not a worse team"
BEGIN, END = "<!-- made by run.py: begin -->", "<!-- made by run.py: end -->"


def written(page: str, section: str) -> str:
    """The page with the section in its place."""
    before, begin, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not begin:
        before, after = page, "\n"
    return f"{before}{BEGIN}\n\n{section}\n{END}{after}"


def section(tables: Tables, systems: Systems, figures: Sequence[str]) -> str:
    """Everything that was found, in Markdown."""
    parts = [
        ("In short", _in_short(tables)),
        ("Beside the plain loop, each in its own games", _compared(tables.own_games, "plain loop")),
        ("Against the same opponents", _against(tables)),
        ("MADDPG beside DDPG", _compared(tables.algorithms, "ddpg", "maddpg")),
        ("Many copies beside one", _compared(tables.copies, "one copy", "32 copies")),
        ("Beside published numbers", _published(tables)),
        ("Predator and prey", _meetings(tables.predator_prey, "predators", "prey")),
        ("Physical deception", _meetings(tables.deception, "adversary", "agents")),
        ("Numbers that are worse than published ones", _explained(tables)),
        ("Which curves still rise", _rises(tables.rises)),
        ("COMA in a corridor", _switch(systems.switch)),
        ("Tennis", _tennis(systems.tennis)),
        ("Curves", "\n".join(f"![{name.partition('.')[0]}](figures/{name})" for name in figures)),
    ]
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in parts if text)


def _in_short(tables: Tables) -> str:
    """What the comparisons come to."""
    adversarial = {row.scenario for row in tables.own_games if row.who != "total"}
    together = [row for row in tables.own_games if row.scenario not in adversarial]
    many = [row for row in tables.copies if "own games" not in row.who]
    lines = [
        _tally("Ours beside the plain loop where all play together", together),
        _tally("Ours beside the plain loop against the same opponents", tables.against_plain),
        _tally("32 copies beside one", many),
        _tally("MADDPG beside DDPG where all play together", tables.algorithms),
    ]
    return "\n".join(f"- {line}" for line in lines if line)


def _tally(title: str, rows: Sequence[Compared]) -> str:
    """How many are better, alike and worse, and which are worse."""
    known = [row for row in rows if row.gap and row.gap.half is not None]
    if not known:
        return ""
    found = {verdict: [row for row in known if row.verdict == verdict] for verdict in get_args(Verdict)}
    worse = ", ".join(f"{row.scenario} {row.algo} {row.who} {row.mode}" for row in found["worse"])
    counts = ", ".join(f"{verdict} {len(there)}" for verdict, there in found.items() if there)
    return f"{title}, {len(known)} intervals: {counts}{f' ({worse})' if worse else ''}."


def shown(value: Estimate | None) -> str:
    """`-39.22 ± 0.71`."""
    if value is None:
        return ""
    places = 3 if abs(value.mean) < 1 else 2 if abs(value.mean) < 100 else 1
    spread = "" if value.half is None else f" ± {value.half:.{places}f}"
    return f"{value.mean:.{places}f}{spread}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; nothing when it has no rows."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) if len(lines) > 2 else ""


def _seeds(row: Compared) -> str:
    return f"{row.ours.n} / {row.theirs.n}" if row.theirs else str(row.ours.n)


def _gap(row: Compared) -> str:
    return ", ".join(text for text in (shown(row.gap), row.gap and row.verdict) if text)


def _compared(rows: Sequence[Compared], theirs: str, ours: str = "ours") -> str:
    """Greedy and sampled side by side."""
    lines = []
    for (scenario, algo, who), group in groupby(rows, key=lambda row: (row.scenario, row.algo, row.who)):
        modes = list(group)
        cells = [cell for row in modes for cell in (shown(row.ours), shown(row.theirs), _gap(row))]
        lines.append([scenario, algo, who, *cells, _seeds(modes[0])])
    titles = [f"{what}, {mode}" for mode in ("greedy", "sampled") for what in (ours, theirs, "difference")]
    return table(["scenario", "algorithm", "return of", *titles, "seeds"], lines)


def _against(tables: Tables) -> str:
    judged = _compared(tables.against_plain, "plain loop")
    return "\n\n".join(part for part in (judged, _meetings(tables.meetings, "first team", "others")) if part)


def _meetings(rows: Sequence[Meeting], first: str, others: str) -> str:
    if not rows:
        return ""
    what = list(rows[0].found)
    lines = [
        [
            row.scenario,
            row.mode,
            row.first,
            row.others,
            *(shown(row.found[each]) for each in what),
            *(f"{row.published[each]:g}" if each in row.published else "" for each in what if _any(rows, each)),
        ]
        for row in rows
    ]
    words = [WORDS.get(each, each) for each in what]
    papers = [f"{word}, paper" for word, each in zip(words, what, strict=True) if _any(rows, each)]
    return table(["scenario", "played", first, others, *words, *papers], lines)


def _any(rows: Sequence[Meeting], what: str) -> bool:
    return any(what in row.published for row in rows)


def _published(tables: Tables) -> str:
    lines = [
        [
            row.number.run,
            row.number.what,
            f"{row.number.value:g}",
            *(shown(row.ours.get(mode)) for mode in ("sampled", "greedy")),
            shown(row.plain),
            shown(row.soft),
            row.number.source,
            row.number.convention,
        ]
        for row in tables.published
    ]
    titles = ["run", "what", "published", "ours, sampled", "ours, greedy", "plain loop, sampled"]
    text = table([*titles, "ours with soft actions, sampled", "source", "what is counted"], lines)
    left_out = "\n".join(f"- {reason}." for reason in NOT_COMPARED)
    told, not_told = tables.listeners["told"], tables.listeners["not told"]
    talk = (
        f"In simple_speaker_listener a hand-written listener that knows its landmark earns {told:.1f} in all, and one "
        f"that is told nothing and goes to the middle of the three {not_told:.1f} (`reference/bounds.py`). The logs "
        f"count these as {2 * told:.1f} and {2 * not_told:.1f}."
    )
    return f"{text}\n\n{talk}\n\nNot compared:\n\n{left_out}" if text else ""


def _explained(tables: Tables) -> str:
    lines = [_explanation(row) for row in tables.published if row.below]
    games = [row for row in [*tables.predator_prey, *tables.deception] if row.mode == "sampled"]
    for (scenario, what), group in groupby(_lower(games), key=lambda found: (found[0].scenario, found[1])):
        cases = "; ".join(
            f"{row.first} against {row.others} {shown(row.found[what])}, published {row.published[what]:g}"
            for row, _ in group
        )
        lines.append(f"- `{scenario}`, {WORDS[what]}: {cases}. What differs: {BOTH_SIDES}; {OTHER_WORLD}.")
    return "\n".join(lines)


def _lower(rows: Sequence[Meeting]) -> list[tuple[Meeting, str]]:
    """Rows of cross-play tables and what in them is lower than published, by scenario and measure."""
    lower = [(row, what) for row in rows for what, value in row.published.items() if row.found[what].mean < value]
    return sorted(lower, key=lambda found: (found[0].scenario, found[1]))


def _explanation(row: Beside) -> str:
    sampled = row.ours["sampled"]
    facts = [f"{shown(sampled)} sampled, {row.number.value:g} published"]
    if sampled.low is not None and sampled.high is not None and sampled.low <= row.number.value <= sampled.high:
        facts.append("the published number lies within our interval")
    if row.plain:
        facts.append(f"the plain loop reaches {shown(row.plain)} on the same environment")
    if row.soft:
        worse = (row.soft.mean < row.number.value) == row.number.more_is_better
        facts.append(f"with soft actions ours reach {shown(row.soft)}, {'also worse' if worse else 'not worse'}")
    return f"- `{row.number.run}`, {row.number.what}: {'; '.join(facts)}. What differs: {row.number.why}."


def _rises(rows: Sequence[Rise]) -> str:
    lines = [
        [row.name, shown(row.gain), "yes" if row.gain.low is not None and row.gain.low > 0 else "not shown"]
        for row in rows
    ]
    return table(["run", "last tenth of the training returns less the tenth before", "still rises"], lines)


def _switch(rows: Sequence[Corridor]) -> str:
    """A line a run file, its seeds side by side."""
    lines = []
    for name, group in groupby(rows, key=lambda row: row.name):
        seeds = list(group)
        measures = ([row.halfway for row in seeds], [row.sampled for row in seeds], [row.greedy for row in seeds])
        seconds = [f"{min(each):.0f} to {max(each):.0f}" for each in [[row.seconds for row in seeds]]]
        lines.append([name, *(", ".join(f"{value:.2f}" for value in values) for values in measures), *seconds])
    titles = ["sampled, half of the training", "sampled, at the end", "greedy, at the end", "seconds"]
    return table(["run", *titles], lines)


def _tennis(rows: Sequence[Rally]) -> str:
    lines = [
        [
            str(row.seed),
            f"{row.solved:,}" if row.solved else f"not in {row.episodes:,}",
            f"{row.steps:,}" if row.steps else "",
            f"{row.seconds:.0f}" if row.seconds else "",
            f"{row.score:.2f} after {row.episodes:,}",
        ]
        for row in rows
    ]
    return table(["seed", "solved at training episode", "steps by then", "seconds by then", "score, greedy"], lines)
