"""Array conversion: round trips for every type and size, without copies where promised."""

import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from kin_interfaces.msg import Progress
from rclpy.serialization import deserialize_message, serialize_message

from kin_core.errors import InvalidInput
from kin_ros.arrays import from_field, to_field

TYPES = [
    "float64", "float32", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
def test_round_trip(dtype, data):
    values = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0, max_side=9)))
    field = to_field(values, dtype)
    assert isinstance(field, array.array)
    back = from_field(field)
    assert back.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(back, values.reshape(-1))


@pytest.mark.parametrize("dtype", TYPES)
def test_empty(dtype):
    field = to_field(np.empty((0, 3)), dtype)
    assert len(field) == 0
    assert from_field(field).shape == (0,)
    assert from_field(field).dtype == np.dtype(dtype)


def test_huge():
    values = np.random.default_rng(0).normal(size=(5_000_000, 3))
    field = to_field(values)
    np.testing.assert_array_equal(from_field(field).reshape(-1, 3), values)


def test_reading_copies_nothing():
    field = to_field(np.arange(4.0))
    view = from_field(field)
    field[2] = 9.0
    assert view[2] == 9.0


def test_strided_transposed_and_bool():
    values = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(from_field(to_field(values.T)), values.T.reshape(-1))
    np.testing.assert_array_equal(
        from_field(to_field(values[::2, ::-1])), values[::2, ::-1].ravel()
    )
    assert list(to_field(np.array([True, False]), bool)) == [1, 0]


def test_other_sequences_and_casts():
    np.testing.assert_array_equal(from_field([1, 2, 3], "float64"), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(from_field(b"\x01\x02"), [1, 2])
    assert from_field(to_field([1.5], "float32"), "float64").dtype == np.float64
    with pytest.raises(InvalidInput, match="complex128 has no ROS array type"):
        to_field([1j], "complex128")


def test_through_a_real_message():
    values = np.random.default_rng(1).normal(size=1000)
    message = Progress(counters=to_field(values))
    back = deserialize_message(serialize_message(message), Progress)
    np.testing.assert_array_equal(from_field(back.counters), values)
