"""Kernels are compiled once, and again when their package has changed; compilers outlive nobody."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from kin_tools.precompile import compile_kernels, kernel_programs


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
import sys, time
if "--compile" in sys.argv:
    with open({log!r}, "a") as log:
        print("begin", file=log, flush=True)
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


def test_kernels_are_compiled_once_and_again_after_a_change(workspace):
    good, good_log = workspace("good")
    bad, bad_log = workspace("bad", code=1)
    said = []
    for _ in range(2):
        compile_kernels([good, bad], said.append)
    assert good_log.read_text() == "begin\n"
    assert bad_log.read_text() == "begin\n" * 2  # what failed is tried again
    (workspace.stamps / "good").write_text("good 2")
    compile_kernels([good], said.append)
    compile_kernels([good], said.append)
    assert good_log.read_text() == "begin\n" * 2
    assert len(said) == 3


def test_a_first_node_without_kernels_has_no_cache_to_find(workspace, monkeypatch, tmp_path):
    program, log = workspace("plain")
    shutil.rmtree(tmp_path / "cache" / "numba")
    compile_kernels([program], lambda line: None)
    compile_kernels([program], lambda line: None)
    assert log.read_text() == "begin\n"


def test_a_foreign_program_is_not_asked_to_compile(workspace, tmp_path):
    program, log = workspace("ours")
    (workspace.stamps / "ours").unlink()
    compile_kernels([program], pytest.fail)
    assert log.read_text() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_compilers_end_with_the_one_who_started_them(workspace, number):
    program, log = workspace("slow", seconds=600)
    code = (
        f"from kin_tools.precompile import compile_kernels\ncompile_kernels([{program!r}], print)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    while not log.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(number)
    process.communicate(timeout=30)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive


def test_an_interrupt_ends_the_compilers(workspace):
    program, _ = workspace("slow", seconds=600)
    me = psutil.Process()
    timer = threading.Timer(2.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compile_kernels([program], lambda line: None)
    assert not [c for c in me.children() if any("slow_node" in word for word in c.cmdline())]
