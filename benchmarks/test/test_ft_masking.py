"""The campaign of liars, small and seeded: every figure that the large one must have at 0."""

import dataclasses

import pytest

from benchmarks.baselines.ft_adversary import CLAIMS, FACES
from benchmarks.bench_ft_masking import CLASSES, STEP, Campaign, Count
from ft_controller import Arm, ReplicaGroup, Timing


def test_no_honest_processor_is_put_out_and_no_tick_is_lost():
    counts, notes = {name: Count() for name in CLASSES}, []
    with ReplicaGroup(Arm.four_link(), timing=Timing.patient(), clean_ticks=4) as group:
        Campaign(group, 7, counts, notes).run(500)
    assert notes == []
    for name, count in counts.items():
        assert count.ticks > 50 and count.faulty > 10 and count.named > 0, name
        kept = dataclasses.replace(count, ticks=0, faulty=0, named=0)
        assert kept == Count(), name


@pytest.mark.parametrize("choices", [FACES, 3, 2, CLAIMS])
def test_the_model_steps_through_all_choices(choices):
    assert choices % STEP and STEP % choices
