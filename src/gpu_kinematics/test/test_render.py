"""The renderings: the same bits as the text they come from, and where modules are kept."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from delta_oracles import random_inputs, run_both, same_bits

from gpu_kinematics.cpu import CpuBackend
from gpu_kinematics.kernels import OPS, rows
from gpu_kinematics.render import render_c, render_numba


def record(kind, values):
    """A record of Python floats from its rows."""
    if kind is float:
        return float(next(values))
    return kind(*(record(inner, values) for inner in get_type_hints(kind).values()))


def numbers(value):
    """The floats of a record, in order."""
    return [value] if isinstance(value, float) else [n for inner in value for n in numbers(inner)]


@pytest.mark.parametrize("op", OPS)
def test_the_text_as_it_stands_gives_the_bits_of_its_rendering(op):
    n, spec = 200, OPS[op]
    groups = random_inputs(op, "float64", n, np.random.default_rng(4))
    (*outputs, mask), _ = run_both(
        op, "float64", n, np.random.default_rng(4), CpuBackend(), CpuBackend()
    )
    compared = 0
    for robot in range(n):
        inputs = {
            name: record(kind, iter(np.broadcast_to(group.array.T, (n, rows(kind)))[robot]))
            for (name, kind), group in zip(spec.inputs.items(), groups, strict=True)
        }
        taken = {name: inputs[name] for name in get_type_hints(spec.function) if name in inputs}
        try:
            found = numbers(spec.function(**taken))
        except ZeroDivisionError:  # where a rendering gives an infinity
            continue
        if spec.status:
            assert found.pop() == mask[robot]
        assert same_bits(np.array(found), np.concatenate([o[:, robot] for o in outputs]))
        compared += 1
    assert compared > n / 2


def test_each_precision_has_its_own_literals():
    assert "T(0.10000000149011612)" not in render_numba("f64", "strict")
    assert "np.float32" in render_numba("f32", "fast") and '"contract"' in render_numba(
        "f32", "fast"
    )
    assert "typedef double T;" in render_c("f64") and "typedef float T;" in render_c("f32")


LOAD = "from gpu_kinematics.render import numba_module\nm = numba_module('f64', 'strict')\n"


def start(code, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", LOAD + code],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process):
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return text.strip()


def test_processes_that_start_together_share_one_module(tmp_path):
    started = [start("print(m.__file__)", NUMBA_CACHE_DIR=tmp_path) for _ in range(4)]
    (file,) = {Path(answer(process)) for process in started}
    assert file.is_relative_to(tmp_path)
    assert [path.name for path in file.parent.iterdir() if path.is_file()] == [file.name]


def test_a_module_that_is_written_again_is_not_compiled_again(tmp_path):
    code = "m.ik_plain(*[0] * 7)\nprint(m.__file__, sum(m.ik_plain.stats.cache_hits.values()))"
    file, hits = answer(start(code, NUMBA_CACHE_DIR=tmp_path)).split()
    assert hits == "0"
    Path(file).unlink()
    assert answer(start(code, NUMBA_CACHE_DIR=tmp_path)) == f"{file} 1"


def test_without_a_folder_to_write_to_a_process_has_its_own(tmp_path):
    no_folder = tmp_path / "file" / "below"
    no_folder.parent.write_text("")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    places = {"NUMBA_CACHE_DIR": no_folder, "XDG_CACHE_HOME": no_folder, "TMPDIR": temporary}
    code = "import os\nassert os.path.exists(m.__file__)\nprint(m.__file__)"
    assert Path(answer(start(code, **places))).is_relative_to(temporary)
    assert not any(temporary.iterdir())
