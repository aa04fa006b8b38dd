"""What a solve answers: the code and the sentence, and the coordinates by name."""

from __future__ import annotations

import numpy as np
import pytest

from hier_ik import Residual, Solver, tower
from hier_ik.solution import Ending
from kin_core.errors import StatusCode

FAR = ("reach", 3.0, 2.0)
POSTURE = {"a": np.zeros(1)}


@pytest.mark.parametrize(
    ("fields", "unmet", "code", "says"),
    [
        ({}, (), StatusCode.SUCCESS, "all 4 tasks met"),
        ({"alternative": POSTURE}, (), StatusCode.SUCCESS, "far from the start"),
        ({"stopped": StatusCode.TIMEOUT, "far": FAR}, ("g",), StatusCode.TIMEOUT, "stopped"),
        ({"far": FAR}, ("g",), StatusCode.UNREACHABLE, "'reach' is 3 m away and its chain 2 m"),
        ({"searched": True}, ("g", "h"), StatusCode.UNREACHABLE, "2 of 4 tasks cannot be met"),
        ({"searched": True, "alternative": POSTURE}, ("g",), StatusCode.NOT_CONVERGED, "meets all"),
        ({"iterations": 9}, ("g",), StatusCode.NOT_CONVERGED, "not met in 9 iterations"),
        ({"early": ("g",)}, ("g",), StatusCode.NOT_CONVERGED, "'g' is moved by joints of later"),
        ({"at_limit": ("j",)}, ("g",), StatusCode.NOT_CONVERGED, "1 joints at a limit, first 'j'"),
        ({"outside": ("k",)}, (), StatusCode.SUCCESS, "outside their limits, first 'k'"),
    ],
)
def test_the_first_reason_that_holds_is_given(fields, unmet, code, says):
    given, sentence = Ending(at_rest=True, **fields).verdict(4, unmet, 0.25)
    assert given == code
    assert says in sentence
    assert ("worst 'g' by 0.25" in sentence) == bool(unmet)


def test_the_size_of_a_residual_is_its_larger_norm():
    assert Residual("r", 0, 0, 0.3, 0.2, met=False, goal=True).size == 0.3
    assert Residual("r", 0, 0, 0.1, 0.2, met=False, goal=True).size == 0.2


def test_a_solution_has_every_joint_and_its_history_falls():
    solver = Solver(tower(2))
    solver.set_goal("drag", (0.2, 0.0, 1.5))
    solution = solver.solve()
    assert set(solution.values) == set(solver.linkage.joints)
    for name, value in solution.values.items():
        assert value.shape == (solver.linkage.joints[name].dof,)
    assert len(solution.history) == solution.iterations
    assert solution.history[-1] < 1e-6 < solution.history[0]
    assert solution.residual == max(r.size for r in solution.residuals)
