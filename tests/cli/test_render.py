import pytest
from PIL import Image


def test_the_newest_run_is_filmed_into_its_own_folder(marlctl, run, files):
    before = files()
    said = marlctl("render", "--episodes", 2)
    assert said.code == 0
    name = said.out.strip().removeprefix("runs/toy_grid/toy/toy/")
    assert name.startswith("renders/last-step-")
    after = files()
    assert after.pop(name).startswith(b"GIF89a")
    assert after == before
    assert "steps in 2 episodes" in said.err


def test_best_and_a_step_are_named_after_what_they_show(marlctl, run):
    step = max(int(path.stem.removeprefix("step-")) for path in run.path.glob("checkpoints/step-*.json"))
    assert marlctl("render", "toy", "--which", step).out.endswith(f"/renders/step-{step}.gif\n")
    assert "/renders/best-step-" in marlctl("render", "--which", "best").out


def test_frames_and_width(marlctl, run, tmp_path):
    said = marlctl("render", "--out", "frames", "--width", 70, "--episodes", 1, "--stochastic")
    assert said.out == "frames\n"
    steps = int(said.err.split()[0])
    assert f"{steps} steps in 1 episode, mean" in said.err
    written = sorted((tmp_path / "frames").iterdir())
    assert len(written) == steps
    with Image.open(written[0]) as picture:
        assert picture.width == 70


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--human"], 2, "no display here"),
        (["--human", "--out", "x.gif"], 2, "writes nothing"),
        (["--out", "x.mp4"], 2, "must end with .gif"),
        (["--out", "runs"], 2, "not an empty folder"),
        (["--which", "bset"], 2, "must be best, last or the step"),
        (["--which", "77"], 2, "no checkpoint of step 77"),
        (["tay"], 2, "did you mean toy"),
        (["--fps", "0"], 2, "--fps"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(marlctl, files, tmp_path, monkeypatch, arguments, code, words):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    before = files()
    said = marlctl("render", *arguments)
    assert said.code == code
    assert words in said.err
    assert said.out == ""
    assert files() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["runs"]
