"""Kernels are compiled once, and again when their package has changed.

That compilers end with the one who started them is in launch/test/test_interrupts.py.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kin_core.kernels import LATER
from kin_testing.fixtures import wait_until
from kin_tools.precompile import compile_kernels, compiled_beside, kernel_programs


def test_every_node_with_kernels_is_compiled():
    names = {os.path.basename(program) for program in kernel_programs()}
    assert names == {
        "arm_simulator_node",
        "continuum_ik_node",
        "ft_controller_node",
        "gpu_kinematics_node",
        "hier_ik_node",
        "kin_solvers_node",
    }


NODE = """#!{python}
import os, sys, time
if "--compile" in sys.argv:
    with open({log!r}, "a") as log:
        print("first" if "KINSTACK_KERNELS_LATER" in os.environ else "begin", file=log, flush=True)
        print(os.getpid(), file=open({log!r} + ".pid", "w"))
    time.sleep({seconds})
    sys.exit({code})
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A numba cache as set-up leaves it, and a way to make programs of its packages."""
    cache = tmp_path / "cache" / "numba"
    stamps = cache.parent / "numba-stamps"
    for folder in (cache, stamps):
        folder.mkdir(parents=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))

    def program(package, seconds=0.0, code=0):
        file = tmp_path / "lib" / package / f"{package}_node"
        file.parent.mkdir(parents=True)
        log = tmp_path / f"{package}.log"
        log.touch()
        file.write_text(
            NODE.format(python=sys.executable, log=str(log), seconds=seconds, code=code)
        )
        file.chmod(0o755)
        (stamps / package).write_text(f"{package} 1")
        return str(file), log

    program.stamps = stamps
    return program


def test_kernels_are_compiled_once_and_again_after_a_change(workspace, capsys):
    good, good_log = workspace("good")
    bad, bad_log = workspace("bad", code=1)
    for _ in range(2):
        compile_kernels([good, bad])
    assert good_log.read_text() == "begin\n"
    assert bad_log.read_text() == "begin\n" * 2  # what failed is tried again
    (workspace.stamps / "good").write_text("good 2")
    compile_kernels([good])
    compile_kernels([good])
    assert good_log.read_text() == "begin\n" * 2
    lines = capsys.readouterr().err.splitlines()  # one each time, with how long it took
    assert len(lines) == 3
    assert all(re.fullmatch(r"kinstack: .* of [12] nodes? .*\[\d+ s\]", line) for line in lines)


def test_a_first_node_without_kernels_has_no_cache_to_find(workspace, monkeypatch, tmp_path):
    program, log = workspace("plain")
    shutil.rmtree(tmp_path / "cache" / "numba")
    compile_kernels([program])
    compile_kernels([program])
    assert log.read_text() == "begin\n"


def test_rarer_kernels_are_compiled_beside_the_stack(workspace):
    program, log = workspace("ours")
    for _ in range(2):
        compile_kernels([program], first=True)
    assert log.read_text() == "first\n"

    cache = workspace.stamps.parent / "numba"
    with compiled_beside([program]):
        assert LATER in os.environ
        wait_until(lambda: list(cache.glob("*.compiled")), 60.0, "the kernels")
    with compiled_beside([program]):
        assert LATER not in os.environ
    assert log.read_text() == "first\nbegin\n"
    (workspace.stamps / "ours").write_text("ours 2")
    compile_kernels([program])
    lines = log.read_text()
    compile_kernels([program], first=True)  # all of them are more than the first
    assert log.read_text() == lines


def test_a_stack_that_ends_does_not_wait_for_them(workspace):
    program, log = workspace("slow", seconds=600.0)
    noted = log.with_name(log.name + ".pid")
    with compiled_beside([program]):
        wait_until(lambda: noted.exists() and noted.read_text().strip(), 60.0, "a compiler")
        compiler = psutil.Process(int(noted.read_text()))
        assert compiler.nice() == 19
    wait_until(lambda: not compiler.is_running(), 20.0, "its end")


def test_a_foreign_program_is_not_asked_to_compile(workspace, capsys):
    program, log = workspace("ours")
    (workspace.stamps / "ours").unlink()
    compile_kernels([program])
    assert log.read_text() == ""
    assert capsys.readouterr().err == ""


def test_tests_and_programs_have_one_cache_of_kernels(tmp_path):
    """What a node has compiled no test compiles again: the same sources, under the same path."""
    from kin_core.rotations import skew

    code = "from kin_core.rotations import skew; print(skew.stats.cache_path)"
    program = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert program.stdout.strip() == skew.stats.cache_path
    assert Path(skew.stats.cache_path).parent == Path(os.environ["NUMBA_CACHE_DIR"])
