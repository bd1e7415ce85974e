"""`marlctl runs`: which runs there are, and what is in one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from marlctl.cli import show
from marlctl.cli.flags import RUNS, Json, RunName, SaveDir

if TYPE_CHECKING:
    from marlctl.rundir import RunFolder

app = typer.Typer(help="Runs, finished and not.", no_args_is_help=True)

Facts = dict[str, Any]
LATELY = 100  # episodes that the last return is a mean of


@app.command("list")
def list_(save_dir: SaveDir = RUNS, json: Json = False) -> None:
    """List every run, oldest first."""
    runs = sorted((_facts(path) for path in _folders(save_dir)), key=lambda facts: (facts["created"], facts["path"]))
    if json:
        return show.as_json({"runs": runs})
    if not runs:
        return show.say(f"no runs below {save_dir}; `marlctl train` makes one, --save-dir looks elsewhere")
    show.table(*_fitting(runs, show.width()))
    for facts in runs:
        if facts["state"] == "damaged":
            show.say(f"{facts['path']} is damaged: {facts['problem']}")
    return None


@app.command("show")
def show_(run: RunName = None, save_dir: SaveDir = RUNS, json: Json = False) -> None:
    """Show one run: how far it is, what was set, its checkpoints and the room it takes."""
    from marlctl.rundir import find

    folder = find(save_dir, run)
    values = folder.values()
    facts = {
        **_facts(folder.path),
        "command": values.get("about", {}).get("command", ""),
        "versions": values.get("about", {}).get("versions", {}),
        "changed": _changed(values),
        "checkpoints": _checkpoints(folder.path),
        "bytes": _bytes(folder.path),
    }
    if json:
        return show.as_json(facts)
    _show(facts)
    return None


# -- reading ------------------------------------------------------------------------------------


def _folders(save_dir: Path) -> list[Path]:
    """Everything that is a run, or began to be one."""
    from marlctl.rundir import is_aside

    places = (path for path in save_dir.glob("*/*/*") if path.is_dir() and not path.name.startswith("."))
    return [path for path in places if not is_aside(path)]


def _facts(path: Path) -> Facts:
    """A run in a few words; what is wrong with it is one of them."""
    from marlctl.errors import MarlctlError
    from marlctl.rundir import RunFolder

    told = ("scenario", "algo", "seed", "num_episodes", "steps")
    blank = dict.fromkeys((*told, "episode", "step", "return", "score", "solved_episode", "best_eval"))
    facts = {
        "run": path.name,
        "path": str(path),
        **blank,
        "best_by": "total",
        "created": "",
        "state": "damaged",
        "problem": None,
    }
    try:
        folder = RunFolder(path)
        values = folder.values()
        run = values.get("run", {})
        facts |= {name: run.get(name) for name in told}
        facts["created"] = str(values.get("about", {}).get("created", ""))
        facts["best_by"] = str(run.get("best_by", "total"))
        facts |= _progress(folder, str(facts["best_by"]))
        odd = [name for name in blank if name not in ("scenario", "algo") and not _is_number(facts[name])]
        if odd:
            raise ValueError(f"its {odd[0]} is no number: {facts.pop(odd[0])!r:.40}")
        facts["state"] = "running" if _locked(path) else "finished" if _finished(facts) else "stopped"
    except (MarlctlError, OSError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        facts |= {**blank, "problem": str(error)}
    return facts


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and abs(value) < 1e18)


def _progress(folder: RunFolder, best_by: str) -> Facts:
    """How far a run is, by its last row or its newest checkpoint, and how well it did."""
    from marlctl.metrics import read

    rows = list(read(folder.metrics)) if folder.metrics.is_file() else []
    scores = [_of(row, best_by) for row in rows if row["kind"] == "eval"]
    solved = next((row["episode"] for row in rows if row["kind"] == "solved"), None)
    saved = [c for c in _checkpoints(folder.path) if c.get("kind") == "full" and not c["problem"]]
    places = [(c["step"], c["episode"]) for c in saved if isinstance(c["episode"], int)]
    step, episode = max([*places, *((row["step"], row["episode"]) for row in rows[-1:])], default=(0, 0))
    means = {"return": _lately(rows, "total"), "score": _lately(rows, "score")}
    return {"episode": episode, "step": step, **means, "solved_episode": solved, "best_eval": max(scores, default=None)}


def _of(row: Facts, what: str) -> float:
    """The score of a row, its return in all, or that of a team."""
    if what == "score" and "score" in row:
        return float(row["score"])
    return float(row["return"]["total"] if what == "total" else row["return"]["teams"][what])


def _lately(rows: list[Facts], what: str) -> float | None:
    """The mean return or score of about the last 100 episodes: a row may average only ten."""
    name = "score" if what == "score" else "return"
    played = [row for row in rows if row["kind"] == "train" and name in row]
    ends = [0, *(row["episode"] for row in played)]
    covered, earned = 0, 0.0
    for row, begin in zip(reversed(played), reversed(ends[:-1]), strict=True):
        episodes = max(1, row["episode"] - begin)
        covered, earned = covered + episodes, earned + episodes * _of(row, what)
        if covered >= LATELY:
            break
    return earned / covered if covered else None


def _finished(facts: Facts) -> bool:
    if facts["steps"]:
        return bool(facts["step"] >= facts["steps"])
    return bool(facts["num_episodes"] and facts["episode"] >= facts["num_episodes"])


def _locked(path: Path) -> bool:
    """Whether a process trains here; only a look, so that nobody is kept out by it."""
    import fcntl
    import os

    try:
        file = os.open(path / ".lock", os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _changed(values: Facts) -> Facts:
    """What differs from the defaults; everything, where the plugins that know them are not there."""
    from marlctl import config
    from marlctl.errors import MarlctlError

    names = {name: values.get("run", {}).get(name) for name in ("scenario", "algo")}
    try:
        default: Facts = config.resolve({"run": names}).values
    except MarlctlError:
        default = {}
    return {
        f"{owner}.{name}": value
        for owner in config.OWNERS
        for name, value in values.get(owner, {}).items()
        if default.get(owner, {}).get(name) != value and name not in names
    }


def _checkpoints(path: Path) -> list[Facts]:
    from marlctl.errors import FileError
    from marlctl.storage.files import read_plain
    from marlctl.storage.manifest import MAX_SIZE, parse

    found: list[Facts] = []
    for file in sorted((path / "checkpoints").glob("*.json")):
        try:
            manifest = parse(read_plain(file, MAX_SIZE), file.name)
        except FileError as error:
            found.append({"file": file.name, "problem": str(error)})
            continue
        there = all((path / stored.name).is_file() for stored in manifest.files)
        found.append(
            {
                "file": file.name,
                "kind": "best" if manifest.kind == "policy" else "full",
                "step": manifest.step,
                "episode": manifest.note.get("episode"),
                "score": manifest.note.get("score"),
                "bytes": sum(stored.size for stored in manifest.files),
                "problem": None if there else "some of its files are missing",
            }
        )
    return found


def _bytes(path: Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


# -- showing ------------------------------------------------------------------------------------


# What `runs list` shows, from what every terminal has room for to what only a wide one has.
_COLUMNS = (
    ("run", "scenario", "algo", "done", "return", "state"),
    ("run", "scenario", "algo", "seed", "done", "return", "state"),
    ("run", "scenario", "algo", "seed", "done", "return", "best eval", "state"),
    ("run", "scenario", "algo", "seed", "done", "return", "best eval", "created", "state"),
)
_NAMES = {"run": 20, "scenario": 12, "algo": 8}  # what may be cut, and to how few characters


def _fitting(runs: list[Facts], width: int) -> tuple[list[str], list[list[str]]]:
    """The most columns that fit, with no number or word broken; long names are cut where they must be."""
    whole = [_cells(facts) for facts in runs]
    brief = [{**row, "done": _briefly(facts)} for row, facts in zip(whole, runs, strict=True)]
    for columns, cells in [(_COLUMNS[-1], whole), *((columns, brief) for columns in reversed(_COLUMNS))]:
        least = [[show.cut(row[c], _NAMES.get(c, width)) for c in columns] for row in cells]
        spare = width - show.table_width(list(columns), least)
        if spare >= 0:
            break
    kept = {**_NAMES, "run": max(8, _NAMES["run"] + min(0, spare))}
    for column in kept:  # whatever room is left goes to the names, the run's first
        wanted = max(len(row[column]) for row in cells) - kept[column]
        kept[column] += (more := max(0, min(spare, wanted)))
        spare -= more
    return list(columns), [[show.cut(row[c], kept.get(c, width)) for c in columns] for row in cells]


def _cells(facts: Facts) -> dict[str, str]:
    plain = {name: str(facts[name]) if facts[name] is not None else "" for name in ("run", "scenario", "algo", "seed")}
    numbers = {"return": _number(facts["return"]), "best eval": _number(facts["best_eval"])}
    return {**plain, **numbers, "done": _done(facts), "created": _when(facts), "state": facts["state"]}


def _done(facts: Facts) -> str:
    if facts["episode"] is None:
        return ""
    if facts["steps"]:
        return f"{facts['step']:,} of {show.count(facts['steps'], 'step')}"
    return f"{facts['episode']:,} of {show.count(facts['num_episodes'] or 0, 'episode')}"


def _briefly(facts: Facts) -> str:
    done, total = (facts["step"], facts["steps"]) if facts["steps"] else (facts["episode"], facts["num_episodes"])
    return f"{min(1.0, done / total):.0%}" if done is not None and total else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _when(facts: Facts) -> str:
    """In the reader's own time."""
    try:
        return f"{datetime.fromisoformat(facts['created']).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return str(facts["created"])


def _show(facts: Facts) -> None:
    by = "total" if facts["best_eval"] is None else facts["best_by"]
    show.facts(
        {
            "path": facts["path"],
            "scenario": facts["scenario"],
            "algorithm": facts["algo"],
            "seed": facts["seed"],
            "state": facts["state"],
            "done": f"{_done(facts)}, {show.count(facts['step'] or 0, 'step')} in all",
            "last return": _number(facts["return"]),
            "last score": _number(facts["score"]),
            "solved": f"at episode {facts['solved_episode']:,}" if facts["solved_episode"] else "",
            "best evaluation": _number(facts["best_eval"]) + ("" if by == "total" else f" ({by})"),
            "created": _when(facts),
            "command": facts["command"],
            "versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
            "disk use": show.size(facts["bytes"]),
            "problem": facts["problem"],
        }
    )
    if facts["changed"]:
        show.table(["option", "value"], [[name, str(value)] for name, value in facts["changed"].items()])
    rows = [
        [c["file"], c.get("kind", ""), f"{c.get('step', '')}", show.size(c.get("bytes", 0)), c["problem"] or ""]
        for c in facts["checkpoints"]
    ]
    show.table(["checkpoint", "kind", "step", "size", ""], rows or [["none yet", "", "", "", ""]])
