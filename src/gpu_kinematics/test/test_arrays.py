"""Callers' arrays: layouts, strides, kinds, dtypes, shapes, out=, threads; and bad arguments."""

import threading

import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import CpuBackend, Delta, DeltaInput, Geometry, Limits, Status, explain
from gpu_kinematics.status import summary

ROBOT = Delta(MM, backend="cpu")
ANGLES = np.random.default_rng(0).uniform(-0.6, 1.2, (3, 1000))
TRUE = ROBOT.fk(ANGLES).position


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layouts_give_the_same_bits(dtype):
    angles = ANGLES.astype(dtype)
    soa = ROBOT.fk(angles)
    aos = ROBOT.fk(np.ascontiguousarray(angles.T), layout="aos")
    assert soa.position.dtype == aos.position.dtype == np.dtype(dtype)
    assert same_bits(soa.position, np.ascontiguousarray(aos.position.T))
    one = np.stack([ROBOT.fk(np.ascontiguousarray(a)).position for a in angles.T[:50]])
    assert same_bits(one, np.ascontiguousarray(soa.position.T[:50]))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[:, ::3],
        lambda a: a[:, ::-1],
        lambda a: np.asfortranarray(a),
        lambda a: np.concatenate([a, a])[1:4],
        lambda a: a[:, 5:6],
        lambda a: a.reshape(3, 20, 50),
        lambda a: a.reshape(3, 20, 50)[:, ::2, ::5],
        lambda a: np.broadcast_to(a[:, :1], (3, 7)),
        lambda a: np.frombuffer(b"x" + a.tobytes(), dtype="u1")[1:].view("f8").reshape(3, 1000),
    ],
)
def test_any_strides(view):
    angles = view(ANGLES)
    expected = ROBOT.fk(np.ascontiguousarray(angles)).position
    result = ROBOT.fk(angles)
    assert result.position.shape == angles.shape and result.status.shape == angles.shape[1:]
    assert same_bits(np.ascontiguousarray(result.position), np.ascontiguousarray(expected))


def test_read_only_input_and_lists():
    angles = ANGLES.copy()
    angles.flags.writeable = False
    assert same_bits(ROBOT.fk(angles).position, TRUE)
    assert ROBOT.fk([0, 0, 0]).position[2] == pytest.approx(-45.5384452962549)
    assert ROBOT.fk(([0.1], [0.2], [0.3])).position.shape == (3, 1)


@pytest.mark.parametrize("shape", [(3, 0), (3, 4, 0)])
def test_empty_batches(shape):
    for call in (ROBOT.fk, ROBOT.ik, ROBOT.jacobian, ROBOT.measures):
        result = call(np.empty(shape))
        assert result.status.shape == shape[1:]
    assert ROBOT.fk(np.empty((0, 3)), layout="aos").position.shape == (0, 3)


@pytest.mark.parametrize(
    "bad", [np.zeros(4), np.zeros((2, 3)), np.zeros(()), np.zeros((0,)), [[1.0], [2.0]]]
)
def test_wrong_shapes(bad):
    with pytest.raises(DeltaInput, match="shape"):
        ROBOT.fk(bad)


def test_wrong_layout_is_suggested():
    with pytest.raises(DeltaInput, match="layout='aos'"):
        ROBOT.fk(np.zeros((10, 3)))


@pytest.mark.parametrize(
    "dtype", ["int64", "float16", "longdouble", "complex128", "object", ">f8", "bool", "U3"]
)
def test_wrong_dtypes(dtype):
    with pytest.raises(DeltaInput, match="dtype"):
        ROBOT.fk(np.zeros((3, 5)).astype(dtype))


@pytest.mark.parametrize(
    "bad", ["abc", None, {}, [[1.0, 2.0], [3.0]], np.ma.masked_array(np.zeros((3, 2)))]
)
def test_things_that_are_no_arrays(bad):
    with pytest.raises(DeltaInput):
        ROBOT.fk(bad)


def test_out_is_filled_and_returned():
    out, masks = np.full((3, 1000), 9.0), np.full(1000, 9, np.uint16)
    result = ROBOT.fk(ANGLES, out=out, status=masks)
    assert result.position is out and result.status is masks
    assert same_bits(out, TRUE) and not masks.any()
    same = ANGLES.copy()
    ROBOT.fk(same, out=same)
    assert same_bits(same, TRUE)
    back = np.zeros((1000, 3))
    ROBOT.fk(ANGLES.T.copy(), layout="aos", out=back, status=False)
    assert same_bits(np.ascontiguousarray(back.T), TRUE)


def test_out_that_does_not_fit():
    read_only = np.zeros((3, 1000))
    read_only.flags.writeable = False
    store = np.zeros((3, 1010))
    for out in (np.zeros((3, 999)), np.zeros((3, 1000), np.float32), read_only, [1.0]):
        with pytest.raises(DeltaInput, match="out"):
            ROBOT.fk(ANGLES, out=out)
    with pytest.raises(DeltaInput, match="overlaps"):
        ROBOT.fk(store[:, :1000], out=store[:, 10:])
    with pytest.raises(DeltaInput, match="status"):
        ROBOT.fk(ANGLES, status=np.zeros(5, np.uint16))


class Dlpack:
    """An array of another library on the CPU that gives back its own kind."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        return Dlpack

    @staticmethod
    def from_dlpack(x):
        return Dlpack(np.from_dlpack(x))


def test_dlpack_in_the_same_kind_out():
    result = ROBOT.fk(Dlpack(ANGLES))
    assert isinstance(result.position, Dlpack) and isinstance(result.status, Dlpack)
    assert same_bits(result.position.array, TRUE)


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


# -- geometry


def test_one_geometry_per_robot():
    n = 500
    rng = np.random.default_rng(2)
    R, La, Lb = rng.uniform(0, 20, n), rng.uniform(30, 50, n), rng.uniform(70, 90, n)
    theta = np.array([[0.0], [2.1], [4.2]]) + rng.uniform(-0.2, 0.2, (3, n))
    angles = ANGLES[:, :n]
    for layout in ("soa", "aos"):
        batch = Delta(Geometry(R, La, Lb, theta), backend="cpu", layout=layout)
        given_angles = angles if layout == "soa" else angles.T
        found = batch.fk(given_angles).position
        found = found if layout == "soa" else found.T
        for i in range(0, n, 25):
            single = Delta(Geometry(R[i], La[i], Lb[i], theta[:, i]), backend="cpu")
            assert same_bits(
                single.fk(angles[:, i].copy()).position, np.ascontiguousarray(found[:, i])
            )


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((1.0, -1.0, 1.0), "upper"),
        ((1.0, 1.0, 0.0), "lower"),
        ((np.nan, 1.0, 1.0), "radius"),
        ((1.0, np.inf, 1.0), "upper"),
        (([1.0, 1.0], [1.0, -2.0], 1.0), "upper.*robot 1"),
        (([1.0, 1.0], [1.0, 1.0, 1.0], 1.0), "lengths differ"),
        (("x", 1.0, 1.0), "radius"),
        (([[1.0]], 1.0, 1.0), "radius"),
        ((1.0, 1.0, 1.0, (0.0, 1.0)), "theta"),
        ((1.0, 1.0, 1.0, (0.0, 1.0, np.nan)), "theta"),
    ],
)
def test_bad_geometry_is_refused(arguments, field):
    with pytest.raises(DeltaInput, match=field):
        Geometry(*arguments)


def test_bad_geometry_can_be_masked():
    geometry = Geometry([10.5, 10.5], [40.0, -40.0], 68.0, on_bad="mask")
    robot = Delta(geometry, backend="cpu")
    position, status = robot.fk(ANGLES[:, :2])
    assert status[0] == 0 and np.isfinite(position[:, 0]).all()
    assert status[1] & Status.BAD_GEOMETRY and np.isnan(position[:, 1]).all()
    assert robot.ik(TRUE[:, :2]).status[1] & Status.BAD_GEOMETRY


def test_geometry_of_another_batch_size():
    with pytest.raises(DeltaInput, match="2 robots"):
        Delta(Geometry([1.0, 1.0], 4.0, 8.0), backend="cpu").fk(ANGLES)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Delta(MM, backend="gpu"),
        lambda: Delta(MM, backend="cpu", mode="loose"),
        lambda: Delta(MM, backend="cpu", layout="xyz"),
        lambda: Delta(MM, backend="cpu", threads=-1),
        lambda: Delta("robot", backend="cpu"),
        lambda: CpuBackend(threads=True),
        lambda: Limits(1.0, -1.0),
        lambda: Limits([0.0, 1.0], 2.0),
        lambda: ROBOT.fk(ANGLES, platform="side"),
        lambda: ROBOT.fk(ANGLES, layout="xyz"),
        lambda: ROBOT.ik(ANGLES, elbows=8),
        lambda: ROBOT.control(ANGLES, ANGLES, gain=-1.0, max_rate=1.0),
        lambda: ROBOT.control(ANGLES, ANGLES[:, :3], gain=1.0, max_rate=1.0),
        lambda: ROBOT.forward_motion(ANGLES, ANGLES.astype(np.float32)),
    ],
)
def test_bad_settings_are_refused(make):
    from kin_core.errors import InvalidInput

    with pytest.raises(InvalidInput):
        make()


def test_masks_in_words():
    assert explain(0) == "ok"
    assert explain(0x080) == "arm 2 is above its joint limit"
    assert "arm 3 is too far" in explain(0x100) and "NaN" in explain(4096)
    text = summary(np.array([0, 1, 1, 4096, 8, 2, 32768], np.uint16))
    assert text.startswith("2 robots: arm 1 is too far") and "more reasons" in text
