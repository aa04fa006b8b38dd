"""The kernel language: what is written of it, and what is refused."""

import ast
import inspect

import pytest

from gpu_kinematics.kernels import elementary, language
from gpu_kinematics.kernels.records import Columns, Vector
from gpu_kinematics.writer import CWriter, Function, NumbaWriter, Refused


def rendered(writer, text, results=(float,), **parameters):
    """A function of the text, from its source, as a writer renders it."""
    (node,) = ast.parse(text).body
    names = {**vars(language), **vars(elementary), "Vector": Vector, "Columns": Columns}
    writer.functions = {**writer.functions, "f": Function(node, parameters, results, names)}
    return writer.function("f")


def lines(body):
    return "def f(a, p):\n  'x'\n" + "".join(f"  {line}\n" for line in body.split(";"))


TYPES = {"a": float, "p": Vector}


def test_records_become_numbers():
    found = rendered(NumbaWriter("f64"), lines("q = Vector(a, p.z, 2.0);return dot(q, p)"), **TYPES)
    assert found == (
        "@inlined\ndef f(a, p_x, p_y, p_z):\n"
        "    q_x, q_y, q_z = a, p_z, T(2.0)\n"
        "    return dot(q_x, q_y, q_z, p_x, p_y, p_z)"
    )


def test_calls_inside_calls_get_a_name():
    found = rendered(NumbaWriter("f64"), lines("return dot(cross(p, p), p)"), **TYPES)
    assert "t_1_x, t_1_y, t_1_z = cross(" in found
    assert found.endswith("return dot(t_1_x, t_1_y, t_1_z, p_x, p_y, p_z)")


def test_a_record_in_c_changes_at_once():
    text = lines("q = Vector(a, a, a);q = Vector(q.y, q.x, a);return q.x")
    found = rendered(CWriter("f32"), text, **TYPES)
    assert "T q_x = a;" in found
    assert "const T n_q_x = q_y; const T n_q_y = q_x;" in found and "q_x = n_q_x;" in found


def test_single_precision_blocks_and_loops():
    text = lines("b = a;for _ in range(2): b = b * b;if SINGLE: b = -b;return b")
    double, single = (rendered(NumbaWriter(kind), text, **TYPES) for kind in ("f64", "f32"))
    assert double.count("b = (b * b)") == single.count("b = (b * b)") == 2
    assert "b = (-b)" in single and "b = (-b)" not in double


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return a ** 2.0", "language"),
        ("return a + 2", "language"),
        ("return unknown(a)", "unknown function"),
        ("return b", "unknown name"),
        ("return p", "annotation"),
        ("return p + a", "not a number"),
        ("b = a < 1.0;b = a;return b", "changes its type"),
        ("p_x = a;return a", "underscores"),
        ("x, y = cross(p, p);return x", "values"),
        ("q = Vector(a, a);return a", "fields"),
        ("q = cross(a=p, b=p);return a", "position"),
        ("b = a", "one return"),
        ("assert a;return a", "language"),
        ("while a: a = a;return a", "language"),
        ("for b in p: a = b;return a", "fixed range"),
        ("for _ in range(a): a = a;return a", "fixed length"),
    ],
)
@pytest.mark.parametrize("writer", [NumbaWriter, CWriter])
def test_what_is_not_in_the_language_is_refused(writer, body, why):
    with pytest.raises(Refused, match=why):
        rendered(writer("f64"), lines(body), **TYPES)


@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_every_function_is_rendered_after_those_it_calls(precision):
    seen = set()
    for name, function in NumbaWriter(precision).functions.items():
        assert {called.__name__ for called in function.calls()} <= seen
        seen.add(name)
        assert len(inspect.signature(function.names[name]).parameters) <= 8
