import math

from benchmarks.baselines import ft_table1


def test_operation_counts_are_consistent_with_table_1():
    fit = ft_table1.fit()
    assert fit.max_error < 0.06
    counts = [len(ft_table1.count("lower_tolerance", (1, 2))), len(ft_table1.count("parallel"))]
    assert counts == [2, 4]
    assert math.isfinite(fit.weights.sum())
