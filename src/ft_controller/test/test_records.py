import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from ft_controller.records import record

names = st.lists(st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True), unique=True, max_size=8)


@given(names=names, cut=st.integers(0, 8))
def test_every_field_is_one_word_and_integers_come_first(names, cut):
    made = record(" ".join(names[:cut]), " ".join(names[cut:]))
    assert list(made.names or ()) == names
    assert made.itemsize == 8 * len(names)
    for place, name in enumerate(names):
        kind, offset = made.fields[name]
        assert offset == 8 * place
        assert kind == (np.int64 if place < cut else np.float64)


def test_kernels_read_and_write_fields_by_name():
    @njit
    def swap(one):
        one.count, one.size = int(one.size), float(one.count)

    values = np.array([(3, 5.0), (7, 9.0)], record("count", "size"))
    swap(values[1])
    assert values.tolist() == [(3, 5.0), (9, 7.0)]
