"""The page that tells of the results: Markdown, made from the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from reference.intervals import Estimate
from reference.published import NOT_COMPARED, OTHER_WORLD
from reference.tables import Beside, Compared, Meeting, Rise, Tables

WORDS = {
    "touches": "touches an episode",
    "agent_success": "agents at the target in the end, %",
    "adversary_success": "adversary at the target in the end, %",
    "agent_ever": "agents ever there, %",
    "adversary_ever": "adversary ever there, %",
}
BEGIN, END = "<!-- made by run.py: begin -->", "<!-- made by run.py: end -->"


def written(page: str, section: str) -> str:
    """The page with the section in its place."""
    before, begin, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not begin:
        before, after = page, "\n"
    return f"{before}{BEGIN}\n\n{section}\n{END}{after}"


def section(tables: Tables, figures: Sequence[str]) -> str:
    """Everything that was found, in Markdown."""
    parts = [
        ("Beside the plain loop, each in its own games", _compared(tables.own_games, "plain loop")),
        ("Against the same opponents", _against(tables)),
        ("MADDPG beside DDPG", _compared(tables.algorithms, "ddpg", "maddpg")),
        ("Many copies beside one", _compared(tables.copies, "one copy", "32 copies")),
        ("Beside published numbers", _published(tables.published)),
        ("Predator and prey", _meetings(tables.predator_prey, "predators", "prey")),
        ("Physical deception", _meetings(tables.deception, "adversary", "agents")),
        ("Numbers that are worse than published ones", _explained(tables)),
        ("Which curves still rise", _rises(tables.rises)),
        ("Curves", "\n".join(f"![{name.partition('.')[0]}](figures/{name})" for name in figures)),
    ]
    return "\n".join(f"## {title}\n\n{text}\n" for title, text in parts if text)


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


def _compared(rows: Sequence[Compared], theirs: str, ours: str = "ours") -> str:
    """Greedy and sampled side by side."""
    lines = []
    for (scenario, algo, who), group in groupby(rows, key=lambda row: (row.scenario, row.algo, row.who)):
        modes = list(group)
        cells = [
            cell
            for row in modes
            for cell in (shown(row.ours), shown(row.theirs), shown(row.gap) and f"{shown(row.gap)}, {row.verdict}")
        ]
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


def _published(rows: Sequence[Beside]) -> str:
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
        for row in rows
    ]
    titles = ["run", "what", "published", "ours, sampled", "ours, greedy", "plain loop, sampled"]
    text = table([*titles, "ours with soft actions, sampled", "source", "what is counted"], lines)
    left_out = "\n".join(f"- {reason}." for reason in NOT_COMPARED)
    return f"{text}\n\nNot compared:\n\n{left_out}" if text else ""


def _explained(tables: Tables) -> str:
    lines = [_explanation(row) for row in tables.published if row.below]
    behind = [
        f"{row.scenario}, {row.first} against {row.others}: {WORDS[each]} "
        f"{shown(row.found[each])}, {row.published[each]:g} in the paper"
        for row in [*tables.predator_prey, *tables.deception]
        if row.mode == "sampled"
        for each in row.found
        if each in row.published and row.found[each].mean < row.published[each]
    ]
    if behind:
        reason = f"A number here depends on both sides, so a lower one is not a worse team; {OTHER_WORLD}."
        lines.append("\n".join([f"- Cross-play tables. {reason}", *(f"  - {line}" for line in behind)]))
    return "\n".join(lines)


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
    return f"- `{row.number.run}`, {row.number.what}: {'; '.join(facts)}. Why: {row.number.why}."


def _rises(rows: Sequence[Rise]) -> str:
    lines = [
        [row.name, shown(row.gain), "yes" if row.gain.low is not None and row.gain.low > 0 else "not shown"]
        for row in rows
    ]
    return table(["run", "last tenth of the training returns less the tenth before", "still rises"], lines)
