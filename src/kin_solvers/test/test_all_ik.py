"""All IK: against closed forms, turns, and what the answer says in words."""

import math

import numpy as np
import pytest
from reference_ik import ARMS, compare, configuration

from kin_solvers import Settings, library, solve_all_ik


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ARMS)), ids=[a.name for a in ARMS])
def test_answers_equal_an_independent_list(number):
    arm = ARMS[number]
    rng = np.random.default_rng(number)
    poses, open_lists = 10, 0
    for k in range(poses):
        q = configuration(arm, rng, singular=k == 0)
        listed = arm.solutions(arm.pose(q), rng)
        found = solve_all_ik(arm.mechanism(q))
        verdict = compare(found, listed)
        assert verdict.uncovered == 0
        if not verdict.separated:
            open_lists += 1
            continue
        assert verdict.missing == 0, q
        # Random starts may miss a solution, a closed form may not.
        assert verdict.extra == 0 or arm.kind == "general", q
        assert max(np.abs(arm.pose(p) - arm.pose(q)).max() for p in found.positions) < 1e-8
    assert open_lists <= 1


def test_both_ends_of_a_turn_are_one_configuration():
    """The tutorial's first call: theta4 is 180 degrees in some answers."""
    pose = np.eye(4)
    pose[:3, 3] = [0.4, 0.2, 0.1]
    found = solve_all_ik(library.get("puma560").with_target(pose))
    assert len(found.positions) == 8
    assert found.postures == 8
    assert found.message == "8 postures, all certified"
    gaps = np.abs(np.remainder(found.positions[:, None] - found.positions + math.pi, 2 * math.pi)
                  - math.pi).max(axis=2)  # fmt: skip
    assert (gaps + np.eye(8) > 1e-3).all()


def test_turns_are_said_apart_from_postures():
    found = solve_all_ik(library.get("ur5"))
    assert found.message == "8 postures x 64 turns = 512 solutions, all certified"
    two_pi = 2.0 * math.pi
    arm = (
        ARMS[6]
        .mechanism(np.array([0.3, -0.9, 1.2, 0.4, 0.8, -0.5]))
        .with_ranges({f"theta{k}": (-two_pi, two_pi) for k in range(1, 6)})
    )
    found = solve_all_ik(arm)
    assert found.message == "8 postures x 32 turns = 256 solutions, all certified"
    assert found.postures == 8


def test_a_curve_is_called_a_curve():
    arm = library.get("iiwa7").with_ranges({"theta1": (0.0, 1.0), "theta4": (0.0, 2.5)})
    found = solve_all_ik(arm, settings=Settings(sigma=0.1))
    assert found.dimension == 1
    assert "curve" in found.message
    assert f"{len(found.positions)} samples" in found.message
    assert "posture" not in found.message


def test_an_unreachable_pose_says_so():
    pose = np.eye(4)
    pose[0, 3] = 5.0
    found = solve_all_ik(library.get("puma560").with_target(pose))
    assert len(found.positions) == 0
    assert found.complete
    assert found.message.startswith("proven: no configuration")


def test_an_unfinished_search_says_so():
    found = solve_all_ik(library.get("puma560"), settings=Settings(max_boxes=5))
    assert not found.complete
    assert "incomplete" in found.message
