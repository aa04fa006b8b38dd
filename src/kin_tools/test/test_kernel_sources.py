"""Which changes of a source drop which kernels."""

from pathlib import Path

import pytest

from kin_tools.kernel_sources import drop_stale_kernels, kernel_digests

SRC = Path(__file__).resolve().parents[2]

#: Two packages with kernels, and what they share.
FILES = {
    "core/__init__.py": "",
    "core/numbers.py": "import math\n\nTURN = 2.0 * math.pi\nUNUSED = 3\n",
    "core/words.py": "def short(text):\n    return text[:5]\n",
    "core/kernels.py": (
        "from numba import njit\nfrom core import numbers\n\n"
        "@njit(cache=True)\ndef wrap(x):\n    return x % numbers.TURN\n"
    ),
    "alpha/__init__.py": "from alpha.compiled import jit\nfrom alpha.words import said\n",
    "alpha/compiled.py": "from numba import njit\n\njit = njit(cache=True)\n",
    "alpha/steps.py": (
        "from alpha import jit\nfrom core.kernels import wrap as turned\n\nSTEPS = {}\n"
        "STEPS['first'] = 1\n\n@jit\ndef step(x: 'said') -> float:\n"
        "    return turned(x) * _half()\n\n@jit\ndef _half():\n    return 0.5\n"
    ),
    "alpha/words.py": "from core.words import short\n\ndef said(text):\n    return short(text)\n",
    "beta/__init__.py": "",
    "beta/made.py": (
        "import importlib.util\nimport numba\n\n"
        "load = importlib.util.spec_from_file_location\n"
        "@numba.njit\ndef kernel():\n    return 1\n"
    ),
    "beta/text.py": "TEMPLATE = 'return 1'\n",
    "gamma/__init__.py": "from core.words import short\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        file = tmp_path / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def folders(tree):
    return {folder.name: folder for folder in sorted((tree / "src").iterdir())}


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("core/words.py", "[:5]", "[:6]", ""),
        ("core/numbers.py", "2.0 *", "3.0 *", "alpha core"),
        ("core/numbers.py", "UNUSED = 3", "UNUSED = 4", ""),
        ("core/numbers.py", "UNUSED = 3", "TURN += 1", "alpha core"),
        ("core/kernels.py", "x % numbers", "x + numbers", "alpha core"),
        ("core/kernels.py", "numbers.TURN", "numbers.TURN  # a comment", ""),
        ("alpha/compiled.py", "cache=True", "cache=True, nogil=True", "alpha"),
        ("alpha/steps.py", "return 0.5", "return 0.25", "alpha"),
        ("alpha/steps.py", "['first'] = 1", "['first'] = 2", "alpha"),
        ("alpha/steps.py", "x: 'said'", "x: 'text'", "alpha"),
        ("alpha/words.py", "short(text)", "short(text).upper()", ""),
        ("beta/text.py", "return 1", "return 2", "beta"),
        ("gamma/__init__.py", "short", "short as brief", ""),
    ],
)
def test_a_change_makes_those_kernels_stale_that_reach_it(tree, file, old, new, stale):
    before = kernel_digests(folders(tree))
    assert sorted(before) == ["alpha", "beta", "core"]
    path = tree / "src" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = kernel_digests(folders(tree))
    assert sorted(name for name in after if after[name] != before[name]) == stale.split()


def test_stale_kernels_are_dropped_and_others_kept(tree):
    cache = tree / ".cache"

    def left():
        for name in ("alpha_12ab", "beta_12ab", "core_77"):
            (cache / "numba" / name).mkdir(parents=True, exist_ok=True)
        drop_stale_kernels(cache, folders(tree))
        return sorted(path.name for path in (cache / "numba").iterdir())

    cache.mkdir()
    assert left() == []  # nothing is known of what is there
    assert left() == ["alpha_12ab", "beta_12ab", "core_77"]
    (tree / "src/core/words.py").write_text("def short(text):\n    return text[:7]\n")
    stamp = (cache / "numba-stamps" / "alpha").read_text()
    assert left() == ["alpha_12ab", "beta_12ab", "core_77"]
    assert (cache / "numba-stamps" / "alpha").read_text() == stamp
    (tree / "src/core/numbers.py").write_text("TURN = 1.0\n")
    assert left() == ["beta_12ab"]


def test_the_workspace_no_kernel_is_made_of_texts(tmp_path):
    """What kernels have nothing to do with can change without a word of a compiler."""
    places = {
        folder.name: folder / folder.name
        for folder in sorted(SRC.iterdir())
        if (folder / folder.name).is_dir()
    }
    assert set(kernel_digests(places)) >= {
        *("kin_core", "kin_solvers", "ft_controller", "gpu_kinematics"),
        *("continuum_ik", "hier_ik"),
    }
    places = {name: places[name] for name in ("kin_core", "continuum_ik")}
    before = kernel_digests(places)
    copy = tmp_path / "kin_core"
    copy.mkdir()
    for file in places["kin_core"].glob("*.py"):
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "texts.py").write_text(
        (copy / "texts.py").read_text().replace("LONGEST_SENTENCE = 1000", "LONGEST_SENTENCE = 999")
    )
    assert kernel_digests({**places, "kin_core": copy}) == before
    text = (copy / "rotations.py").read_text()
    assert "t < _SMALL" in text
    (copy / "rotations.py").write_text(text.replace("t < _SMALL", "t <= _SMALL"))
    after = kernel_digests({**places, "kin_core": copy})
    assert "kin_core" in {name for name in after if after[name] != before[name]}
