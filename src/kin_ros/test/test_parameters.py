"""What the documentation shows of parameters."""

from dataclasses import dataclass

from kin_ros.parameters import ParameterSet, describe, parameter


@dataclass(frozen=True, kw_only=True)
class Some(ParameterSet):
    gain: float = parameter(1.0, "factor [-]", minimum=0.0, maximum=10.0)
    steps: int = parameter(3, "steps", minimum=1)
    mode: str = parameter("plain", "how", choices=("plain", "fancy"), read_only=True)
    names: tuple[str, ...] = parameter((), "names")
    free: bool = parameter(True, "or not")


def test_parameters_are_described():
    rows = {row.name: row for row in describe(Some)}
    assert list(rows)[-5:] == ["gain", "steps", "mode", "names", "free"]
    assert rows["gain"].allowed == "a number between 0 and 10"
    assert rows["steps"].allowed == "a whole number at least 1"
    assert rows["mode"].allowed == "plain, fancy"
    assert rows["names"].allowed == "list, each a text"
    assert rows["free"].allowed == "true or false"
    assert rows["gain"].description == "factor [-]"
    assert (rows["gain"].changeable, rows["mode"].changeable) == (True, False)
    assert rows["names"].default == ()
    assert "autostart" in rows
