"""Records with named fields: what numpy writes, a kernel reads, and the other way round."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from hier_ik import Solver, tower
from hier_ik.tables import BODY, Tables, record


@njit
def _double(records, k):
    records[k].turns += 1
    records[k].size *= 2.0
    records[k].at.x = records[k].size


def test_a_kernel_reads_and_writes_fields_by_name():
    kind = record("turns", "size", at=record(numbers="x y"))
    table = np.zeros(3, kind)
    table["size"] = (1.0, 2.0, 4.0)
    _double(table, 2)
    assert table["turns"].tolist() == [0, 0, 1]
    assert table["size"].tolist() == [1.0, 2.0, 8.0]
    assert table["at"]["x"].tolist() == [0.0, 0.0, 8.0]


def test_tables_are_handed_over_in_the_order_of_their_names():
    tables = Solver(tower(1)).tables
    handed = tables.as_tuple()
    for field, table in zip(dataclasses.fields(Tables), handed, strict=True):
        assert table is getattr(tables, field.name)
    assert tables.bodies.dtype == BODY
    assert all(table.flags["C_CONTIGUOUS"] for table in handed)
