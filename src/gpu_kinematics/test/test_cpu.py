"""The CPU backend: threads, concurrent callers, the fast mode."""

import threading

import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import Delta

ROBOT = Delta(MM, backend="cpu")
ANGLES = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 1000))
TRUE = ROBOT.fk(ANGLES).position


@pytest.mark.parametrize("threads", [2, 3, 0])
def test_threads_give_the_same_bits(threads):
    angles = np.random.default_rng(1).uniform(-0.6, 1.2, (3, 200_003))
    many = Delta(MM, backend="cpu", threads=threads)
    assert same_bits(many.fk(angles).position, ROBOT.fk(angles).position)
    assert same_bits(many.ik(angles * 40 - 60).angle, ROBOT.ik(angles * 40 - 60).angle)


def test_calls_from_several_threads():
    results, errors = {}, []

    def work(number):
        try:
            angles = np.random.default_rng(number).uniform(-0.6, 1.2, (3, 5000))
            results[number] = [
                same_bits(ROBOT.fk(angles).position, ROBOT.fk(angles.copy()).position)
                for _ in range(20)
            ]
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors and len(results) == 6 and all(all(r) for r in results.values())


def test_fast_mode_is_close():
    fast = Delta(MM, backend="cpu", mode="fast")
    np.testing.assert_allclose(fast.fk(ANGLES).position, TRUE, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.ik(TRUE).angle, ANGLES, rtol=0, atol=5e-15)
