"""After the warm-up no request compiles a kernel, or loads one."""

import subprocess
import sys

SCRIPT = """
import gc
from numba.core.dispatcher import Dispatcher
from kin_solvers import Settings, library, solve, solve_all_ik
from kin_solvers.warm_up import warm_up

def ready():
    return {
        (kernel.py_func.__module__, kernel.py_func.__qualname__, str(signature))
        for kernel in gc.get_objects() if isinstance(kernel, Dispatcher)
        if kernel.py_func.__module__.startswith("kin_solvers")
        for signature in kernel.signatures
    }

warm_up(2)
before = ready()
assert len(before) > 10, before
for name in ("planar_four_bar", "manseur_doty", "double_butterfly", "iiwa7", "stewart"):
    found = solve(library.get(name), Settings(sigma=0.3, threads=2))
    found.components, found.refine(3), found.as_dict()
solve(library.get("bennett"), Settings(sigma=0.5, method="paper"))
seven = library.get("iiwa7")
solve_all_ik(seven.with_ranges({n: (-2.5, 2.5) for n in seven.names}))
solve_all_ik(library.get("puma560"), seed=[0.1] * 6)
print(sorted(ready() - before))
"""


def test_no_kernel_is_left_for_the_first_request():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
