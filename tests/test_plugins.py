"""Plugins: broken ones are named and harm no other, names that clash are refused, and listing imports nothing."""

import importlib
import itertools
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from marlctl import plugins
from marlctl.errors import ConfigError, PluginError
from marlctl.plugins import Kind, algorithm, environment, find, installed, load, scheme

COUNTER = itertools.count()
GOOD = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Mine:
    '''A plugin.'''
    version = "v7"
    x: int = 1
    memory = None
    def build(self, spec, *, seed, device): ...
    def make(self, *, render_mode=None): ...
    def matrix(self, n_learners, n_units, rng): ...
"""


class Site:
    """A folder of installed packages, as pip would leave it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def install(self, package: str, entries: str, code: str = GOOD, *, metadata: str | None = None) -> str:
        """Install a package with these lines of entry_points.txt, {m} being its module; the module's name."""
        module = f"{package.replace('-', '_')}_{next(COUNTER)}"
        (self.path / f"{module}.py").write_text(textwrap.dedent(code))
        info = self.path / f"{package.replace('-', '_')}-2.5.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text(textwrap.dedent(entries).format(m=module))
        text = f"Metadata-Version: 2.1\nName: {package}\nVersion: 2.5\n" if metadata is None else metadata
        if text:
            (info / "METADATA").write_text(text)
        importlib.invalidate_caches()
        return module


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return Site(folder)


def an_algorithm(name: str) -> str:
    return f"[marlctl.algorithms]\n{name} = {{m}}:Mine\n"


BROKEN = {
    "import no_such_module_at_all": "ModuleNotFoundError: No module named 'no_such_module_at_all'",
    "raise ImportError('too old')": "ImportError: too old",
    "def :": "SyntaxError",
    "assert False, 'not here'": "AssertionError: not here",
    "raise SystemExit(3)": "SystemExit: 3",
    "import sys; sys.exit('bye')": "SystemExit: bye",
    "1 / 0": "ZeroDivisionError",
    "class Yours: pass": "AttributeError",
    "raise RecursionError('deep')": "RecursionError: deep",
    "class Odd(BaseException): pass\nraise Odd('odd')": "Odd: odd",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_plugin_is_one_error_with_name_package_version_cause_and_remedy(site, code):
    site.install("bad-pack", an_algorithm("broken"), code)
    with pytest.raises(PluginError) as caught:
        algorithm("broken")
    said = str(caught.value)
    for part in ("'broken'", "bad-pack 2.5", BROKEN[code], "pip install --force-reinstall bad-pack", "pip uninstall"):
        assert part in said


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_plugin_harms_no_other(site, code):
    module = site.install("bad-pack", an_algorithm("broken"), code)
    assert "broken" in {p.name for p in installed(Kind.ALGORITHM)}
    assert algorithm("toy").__name__ == "Toy"
    assert module not in sys.modules


def test_an_interrupt_while_a_plugin_is_imported_stays_an_interrupt(site):
    site.install("bad-pack", an_algorithm("slow"), "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        algorithm("slow")


@pytest.mark.parametrize(
    "code",
    [
        "Mine = 5",
        "def Mine(): ...",
        "class Mine:\n    def build(self): ...",
        "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    x: int = 1",
        "Mine = None",
    ],
)
def test_what_is_no_dataclass_with_the_right_method_is_refused(site, code):
    site.install("bad-pack", an_algorithm("odd"), code)
    with pytest.raises(PluginError, match=r"'odd' of bad-pack 2\.5 .* a dataclass with a method `build`"):
        algorithm("odd")


def test_a_package_whose_files_are_gone_is_named(site):
    module = site.install("gone-pack", an_algorithm("gone"))
    (site.path / f"{module}.py").unlink()
    importlib.invalidate_caches()
    with pytest.raises(PluginError, match=r"gone-pack 2\.5 cannot be loaded: ModuleNotFoundError"):
        algorithm("gone")


def test_what_a_plugin_prints_while_it_is_imported_stays_out_of_the_results(site, capsys):
    site.install("loud-pack", an_algorithm("loud"), "print('hello from loud')\n" + GOOD)
    assert algorithm("loud").__name__ == "Mine"
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello from loud" in err


def test_a_good_plugin_of_each_kind_loads(site):
    groups = {Kind.ALGORITHM: algorithm, Kind.ENVIRONMENT: environment, Kind.SCHEME: scheme}
    site.install("good-pack", "".join(f"[{kind.value}]\nmine = {{m}}:Mine\n" for kind in groups))
    for kind, door in groups.items():
        assert door("mine").__doc__ == "A plugin."
        assert find(kind, "mine").origin == "good-pack 2.5"


@pytest.mark.parametrize("damage", ["no equals sign\n", "[marlctl.algorithms]\njust a name\n"])
def test_a_package_with_damaged_metadata_hides_no_other(site, damage):
    site.install("damaged-pack", damage)
    site.install("good-pack", an_algorithm("good"))
    assert algorithm("good").__name__ == "Mine"
    assert {"good", "toy"} <= {p.name for p in installed(Kind.ALGORITHM)}


def test_metadata_that_is_not_text_hides_no_other(site):
    site.install("damaged-pack", "")
    (site.path / "damaged_pack-2.5.dist-info" / "entry_points.txt").write_bytes(
        b"[marlctl.algorithms]\n\xff\xfe = x:y\n"
    )
    importlib.invalidate_caches()
    assert "toy" in {p.name for p in installed(Kind.ALGORITHM)}


def test_a_package_without_name_and_version_is_listed_all_the_same(site):
    site.install("nameless", an_algorithm("toy"), metadata="")
    assert [p.name for p in installed(Kind.ALGORITHM)].count("toy") == 2
    with pytest.raises(PluginError, match="'toy'"):
        algorithm("toy")
    assert algorithm("marlctl:toy").__name__ == "Toy"


def test_one_package_seen_twice_is_one_plugin(site, monkeypatch):
    site.install("good-pack", an_algorithm("good"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(site.path)])
    assert [p.name for p in installed(Kind.ALGORITHM)].count("good") == 1


# -- names that clash -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [("pack-a", "pack-b"), ("pack-b", "pack-a")])
@pytest.mark.parametrize("between", [False, True])
def test_two_plugins_of_one_name_are_refused_and_both_packages_are_named(site, order, between):
    first, second = order
    site.install(first, an_algorithm("twin") + ("other = {m}:Mine\n" if between else ""))
    if between:
        site.install("pack-ab", an_algorithm("tween"))
    site.install(second, an_algorithm("twin"))
    with pytest.raises(PluginError, match="two plugins are called 'twin'") as caught:
        algorithm("twin")
    for part in ("pack-a 2.5", "pack-b 2.5", "pack-a:twin", "pack-b:twin"):
        assert part in str(caught.value)
    for package in order:
        assert algorithm(f"{package}:twin").__module__.startswith(package.replace("-", "_"))


def test_a_clash_with_a_built_in_is_refused_as_well(site):
    module = site.install("pack-a", an_algorithm("toy"))
    with pytest.raises(PluginError, match=r"marlctl .* and pack-a"):
        algorithm("toy")
    assert algorithm("pack-a:toy").__module__ == module
    assert algorithm("marlctl:toy").__module__ == "marlctl.testing.toy"


def test_three_of_one_name_are_counted(site):
    for package in ("pack-a", "pack-b", "pack-c"):
        site.install(package, an_algorithm("triplet"))
    with pytest.raises(PluginError, match="3 plugins are called 'triplet'"):
        algorithm("triplet")


def test_of_two_scenarios_the_named_packages_is_taken_with_a_version_too(site):
    module = site.install("pack-a", "[marlctl.environments]\nsimple_tag = {m}:Mine\n")
    with pytest.raises(PluginError, match="two plugins"):
        environment("simple_tag_v3")
    assert environment("pack-a:simple_tag_v7").__module__ == module
    assert environment("marlctl:simple_tag_v3").name == "simple_tag"
    with pytest.raises(ConfigError, match="installed is simple_tag_v7"):
        environment("pack-a:simple_tag_v3")


def test_of_two_families_the_named_packages_is_taken(site):
    code = GOOD + "\ndef family(name): return Mine"
    module = site.install("pack-a", "[marlctl.environment_families]\nmpe = {m}:family\n", code)
    with pytest.raises(PluginError, match="pack-a:mpe"):
        environment("mpe/simple_tag")
    assert environment("pack-a:mpe/simple_tag").__module__ == module
    assert environment("marlctl:mpe/simple_tag").name == "simple_tag"


def test_a_package_that_is_not_installed_cannot_be_chosen():
    with pytest.raises(ConfigError, match="no algorithm 'nowhere:toy'"):
        algorithm("nowhere:toy")


# -- listing ----------------------------------------------------------------------------------------


def run_apart(site: Site, code: str, **environ: str) -> str:
    """What a process of its own prints, with the site's packages installed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"PYTHONPATH": str(site.path), "PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_listing_imports_no_plugin_and_nothing_heavy(site):
    module = site.install("pack-a", an_algorithm("mine"), "raise SystemExit(9)")
    code = f"""
        import sys
        from marlctl.plugins import Kind, installed
        names = [p.name for kind in Kind for p in installed(kind)]
        assert "mine" in names and "maddpg" in names and "simple_tag" in names
        heavy = "torch numpy h5py pettingzoo mpe2 stevedore marlctl_mpe marlctl_maddpg".split()
        print(sorted({{"{module}", *heavy}} & set(sys.modules)))
    """
    assert run_apart(site, code) == "[]"


def test_loading_one_plugin_imports_no_other(site):
    other = site.install("pack-a", an_algorithm("other"), "raise SystemExit(9)")
    code = f"""
        import sys
        from marlctl.plugins import algorithm
        algorithm("toy")
        print("{other}" in sys.modules, "torch" in sys.modules)
    """
    assert run_apart(site, code) == "False False"


def test_a_plugin_installed_a_moment_ago_is_found_and_one_removed_is_gone(site, tmp_path):
    """stevedore would answer from its cache, whose key cannot tell the two moments apart."""
    first = site.install("pack-a", an_algorithm("first"))
    code = """
        from marlctl.plugins import Kind, algorithm, installed
        print(*sorted({p.name for p in installed(Kind.ALGORITHM)} & {"first", "second"}), algorithm("toy").__name__)
    """
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run_apart(site, code, **home) == "first Toy"
    entries = site.path / "pack_a-2.5.dist-info" / "entry_points.txt"
    entries.write_text(f"[marlctl.algorithms]\nsecond = {first}:Mine\n")
    assert run_apart(site, code, **home) == "second Toy"
    assert not (tmp_path / "cache").exists()


def test_what_is_installed_is_sorted_by_name():
    for kind in Kind:
        names = [p.name for p in installed(kind)]
        assert names == sorted(names)


# -- scenarios --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["simple_tag", "simple_tag_v3", "simple_tag-v3", "simple-tag-v3", "mpe/simple_tag", "mpe/simple_tag_v3"]
)
def test_a_scenario_has_several_names(name):
    assert environment(name) is environment("simple_tag")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("simple_tag_v2", "no scenario 'simple_tag_v2'; installed is simple_tag_v3"),
        ("toy_grid_v0", "installed is no numbered versions"),
        ("simple_tga", "did you mean simple_tag"),
        ("mpe/simple_tag_v2", "did you mean mpe/simple_tag_v3"),
        ("mqe/simple_tag", "no scenario family 'mqe'; did you mean mpe"),
        ("mpe/", "no scenario 'mpe/'"),
        ("/x", "no scenario family ''"),
        ("../x", "no scenario family '..'"),
        ("/etc/passwd", "no scenario family ''"),
        ("", "no environment ''"),
        (":", "package.module:factory"),
        ("a:b:c", "package.module:factory"),
        ("a\0b", "no environment"),
        ("x" * 300, "no environment"),
        ("\N{PILE OF POO}", "no environment"),
        ("marlctl:nothing", "no environment 'marlctl:nothing'"),
    ],
)
def test_a_name_that_is_no_scenario_is_explained(name, says):
    with pytest.raises(ConfigError) as caught:
        environment(name)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "def family(name): raise RuntimeError('no luck')",
            "fam/x of pack-a 2.5 cannot be loaded: RuntimeError: no luck",
        ),
        ("def family(name): import no_such_module_at_all", "fam/x of pack-a 2.5 cannot be loaded: ModuleNotFoundError"),
        ("def family(name): raise SystemExit(1)", "SystemExit"),
        ("def family(name): return None", "'fam' of pack-a 2.5 is not what"),
        ("family = 5", "fam/x of pack-a 2.5 cannot be loaded: TypeError"),
    ],
)
def test_a_broken_family_is_named(site, code, says):
    site.install("pack-a", "[marlctl.environment_families]\nfam = {m}:family\n", code)
    with pytest.raises(PluginError) as caught:
        environment("fam/x")
    assert says in str(caught.value)


def test_a_family_may_refuse_a_name_in_its_own_words(site):
    code = "from marlctl.errors import ConfigError\ndef family(name): raise ConfigError(f'no {name} here')"
    site.install("pack-a", "[marlctl.environment_families]\nfam = {m}:family\n", code)
    with pytest.raises(ConfigError, match=r"^no x here$"):
        environment("fam/x")


def test_an_unknown_name_of_any_kind_is_a_usage_error_with_its_own_word():
    for kind, word in {
        Kind.ALGORITHM: "algorithm",
        Kind.FAMILY: "scenario family",
        Kind.SCHEME: "coding scheme",
    }.items():
        with pytest.raises(ConfigError, match=f"no {word} 'zzzz'"):
            find(kind, "zzzz")


def test_loading_goes_by_the_metadata_and_not_by_the_name(site):
    module = site.install("pack-a", an_algorithm("mine"))
    assert load(find(Kind.ALGORITHM, "mine")) is plugins.algorithm("mine")
    assert sys.modules[module].Mine is plugins.algorithm("mine")
