"""Callers' arrays: layouts, strides, kinds, dtypes, shapes, out=, threads; and bad arguments."""

import numpy as np
import pytest
from delta_oracles import MM, same_bits

from gpu_kinematics import Delta, DeltaInput

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
