"""What one processor does, tick after tick, in its own operating-system process.

A tick has up to three rounds. Each round ends in one message, written once into the processor's own
page and stamped when it is complete:

    data      M, N (and tau): whatever is computed redundantly
    votes     comparison vector, working-set suggestion, and the checksums of what was read (echo)
    result    the torques of the joints that were shared out to this processor

Which controller has which rounds is the business of :mod:`~ft_controller.controllers`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ft_controller import voting
from ft_controller.atomics import fence, load_acquire, now_ns, pause, sleep_until
from ft_controller.controllers import Controller, compared_size, data_size, redundant
from ft_controller.dynamics import (
    JOINT,
    add_friction,
    commanded,
    inertia_row,
    make_work,
    outer_sums,
    torque_element,
)
from ft_controller.fault_injection import (
    STUCK,
    accused_by,
    draw,
    obstruct,
    publish,
    publish_two_faced,
    spoil,
)
from ft_controller.faults import FaultKind
from ft_controller.messages import (
    FAULT,
    INPUT,
    Layout,
    Shared,
    alive_set,
    claimed_checksum,
    read_message,
)
from ft_controller.records import Array, Records, Words
from ft_controller.voting import Comparison

__all__ = ["Private", "serve", "warm"]


_LEAD_NS = 120_000  # awake this long before the next tick is due


class Private(NamedTuple):
    """The memory that a processor has for itself.

    Attributes:
        header: Inputs of the tick, shape (1,), of :data:`~ft_controller.messages.INPUT`.
        joints: Shape (n,), of :data:`~ft_controller.dynamics.JOINT`.
        fault: The own fault, shape (1,), of :data:`~ft_controller.messages.FAULT`.
        links: The arm, shape (n,); see :mod:`~ft_controller.dynamics`.
        work: Room for its intermediate results, shape (n,).
        data: M row by row, N, tau.
        bits: The same memory as integers.
        message: What was read of another, or is to be published: set word and data.
        values: The same memory as floats.
        comparison: What was found of each processor, shape (p,).
        echo: Checksums of what was read of each, shape (p,).
        owner: Who computes each joint, shape (n,).
        stuck: A value that is stuck, of the data and of the diagonal, shape (2,).
        clock: Scratch, two words.
    """

    header: Records
    joints: Records
    fault: Records
    links: Records
    work: Records
    data: Array
    bits: Words
    message: Words
    values: Array
    comparison: Words
    echo: Words
    owner: Words
    stuck: Records
    clock: Words

    @classmethod
    def of(cls, layout: Layout, links: Records) -> Private:
        """The memory of a processor of an arm."""
        p, n = layout.p, layout.n
        data = np.zeros(layout.data)
        values = np.zeros(1 + max(layout.data, 2 * p, 2 * n))
        stuck = np.zeros(2, STUCK)
        stuck["onset"] = -1
        return cls(
            header=np.zeros(1, INPUT),
            joints=np.zeros(n, JOINT),
            fault=np.zeros(1, FAULT),
            links=links.copy(),
            work=make_work(links),
            data=data,
            bits=data.view(np.int64),
            message=values.view(np.int64),
            values=values,
            comparison=np.zeros(p, np.int64),
            echo=np.zeros(p, np.int64),
            owner=np.zeros(n, np.int64),
            stuck=stuck,
            clock=np.zeros(2, np.int64),
        )


@njit(cache=True, nogil=True)
def _compute(own: Private) -> int:
    """Compute what all compute; returns how many data that are."""
    header, fault, stuck = own.header[0], own.fault[0], own.stuck[0]
    controller, element = header.controller, fault.element
    joints, work, data, bits = own.joints, own.work, own.data, own.bits
    n = joints.size
    nn = n * n
    outer_sums(own.links, joints["q"], joints["qdot"], work)
    add_friction(own.links, joints["qdot_d"], work)
    commanded(joints, work)
    for i in range(n):
        data[nn + i] = work[i].bias
    spoil(fault, element, data, bits, nn, n, stuck)
    if controller in (Controller.HIGH_TOLERANCE, Controller.ECHO):
        for i in range(n):
            inertia_row(work, i, data[i * n : (i + 1) * n])
        spoil(fault, element, data, bits, 0, nn, stuck)
    if controller == Controller.ECHO:
        for i in range(n):
            data[nn + n + i] = 0.0
            if joints[i].locked == 0.0:
                data[nn + n + i] = torque_element(
                    data[i * n : (i + 1) * n], data[nn + i], work["acceleration"]
                )
        spoil(fault, element, data, bits, nn + n, n, stuck)
    elif controller == Controller.LOWER_TOLERANCE:
        row = own.values[:n]
        for i in range(n):
            inertia_row(work, i, row)
            data[i] = row[i]
        if element < nn and element % (n + 1) == 0:
            # The diagonal lies elsewhere here.
            spoil(fault, element // (n + 1), data, bits, 0, n, own.stuck[1])
    return data_size(controller, n) if redundant(controller) else 0


@njit(cache=True, nogil=True)
def _compare(me: int, tick: int, count: int, shared: Shared, own: Private) -> None:
    """Read the data of all and compare them with the own, as they come in."""
    header, comparison, echo, clock = own.header[0], own.comparison, own.echo, own.clock
    theirs = own.values[1:]
    controller = header.controller
    compared = compared_size(controller, own.joints.size)
    comparison[:] = Comparison.MISSING
    echo[:] = 0
    comparison[me] = Comparison.SAME
    echo[me] = claimed_checksum(shared.data, me, tick)
    for k in range(count):
        if not math.isfinite(own.data[k]):
            comparison[me] = Comparison.NOT_FINITE
    seen = 1 << me
    same = 1
    began = now_ns(clock)
    while True:
        for j in range(comparison.size):
            if voting.has(seen, j):
                continue
            found, echoed = read_message(shared.data, j, tick, count, own.message)
            if found == Comparison.MISSING:
                continue
            seen |= 1 << j
            echo[j] = echoed
            if found == Comparison.SAME:
                if voting.equal(own.data, theirs, 0, compared, header.tolerance) >= 0:
                    found = Comparison.DIFFERS
                    for k in range(count):
                        if not math.isfinite(theirs[k]):
                            found = Comparison.NOT_FINITE
                else:
                    same += 1
            comparison[j] = found
        alive = alive_set(shared.processes)
        if header.awaited & alive & ~seen == 0:
            return
        now = now_ns(clock)
        if now > header.deadline or load_acquire(shared.input.control, 0) != tick:
            return
        # The votes of echo decide nothing, they only tell who lies: no reason to wait on, and
        # nobody can make another late by being late.
        if now > header.release + header.grace and (
            controller == Controller.ECHO
            or same >= min(header.quorum, voting.members(header.working_set & alive))
        ):
            return
        pause(clock, now - began)


@njit(cache=True, nogil=True)
def _vote(me: int, tick: int, shared: Shared, own: Private) -> None:
    """Publish comparisons and echoes, with those that were found to be the same as a suggestion."""
    p = own.comparison.size
    fault = own.fault[0]
    if fault.kind == FaultKind.LYING_VOTE:
        victim = accused_by(me, fault.seed, p)
        own.comparison[victim] = Comparison.DIFFERS
        if draw(fault.seed, 3) % 2 == 0:
            own.echo[victim] ^= 1 << 20
    suggestion = 0
    for j in range(p):
        own.message[j] = own.comparison[j]
        own.message[p + j] = own.echo[j]
        if own.comparison[j] == Comparison.SAME:
            suggestion |= 1 << j
    publish(me, tick, shared.votes, suggestion, own.message[: 2 * p], fault, own.clock)


@njit(cache=True, nogil=True)
def _elect(tick: int, shared: Shared, own: Private) -> int:
    """Wait for the votes of all; returns who is left for the rest of this tick."""
    header, clock = own.header[0], own.clock
    working = header.working_set
    p = own.comparison.size
    against = np.zeros(p, np.int64)
    voted = 0
    began = now_ns(clock)
    while True:
        for j in range(p):
            if voting.has(voted, j):
                continue
            found, _ = read_message(shared.votes, j, tick, 2 * p, own.message)
            if found == Comparison.MISSING:
                continue
            voted |= 1 << j
            if found == Comparison.SAME and voting.has(working, j):
                for k in range(p):
                    if k != j and voting.accused(own.message[1 + k]):
                        against[k] += 1
            elif found == Comparison.BAD_CHECKSUM:
                against[j] += p
        alive = alive_set(shared.processes)
        if header.awaited & alive & ~voted == 0:
            break
        now = now_ns(clock)
        if now > header.deadline or load_acquire(shared.input.control, 0) != tick:
            break
        present = voting.members(voted & working)
        if now > header.release + 2 * header.grace and present >= min(
            header.quorum, voting.members(working & alive)
        ):
            break
        pause(clock, now - began)
    group = working & voted
    for j in range(p):
        if voting.voted_out(against[j], working, j):
            group &= ~(1 << j)
    return group


@njit(cache=True, nogil=True)
def _share_out(me: int, tick: int, group: int, shared: Shared, own: Private) -> None:
    """Compute and publish the torques that are this processor's in a group."""
    header, fault, stuck, owner = own.header[0], own.fault[0], own.stuck[0], own.owner
    controller, joints, data, bits = header.controller, own.joints, own.data, own.bits
    p, n = own.comparison.size, joints.size
    bias, tau = n * n, n * n + n
    if controller == Controller.SERIAL:
        owner[:] = 0
    elif controller == Controller.PARALLEL:
        for i in range(n):
            owner[i] = i % p
    else:
        voting.assign(group, p, header.reconfiguration, joints["locked"], owner)
    mine_any = False
    for i in range(n):
        data[tau + i] = 0.0
        if owner[i] == me:
            mine_any = True
            if joints[i].locked == 0.0:
                row = data[i * n : (i + 1) * n]
                if controller != Controller.HIGH_TOLERANCE:
                    inertia_row(own.work, i, row)
                    spoil(fault, fault.element, data, bits, i * n, n, stuck)
                # tau_i = sum_j M_ij qddot_j + N_i
                data[tau + i] = torque_element(row, data[bias + i], own.work["acceleration"])
    if not redundant(controller) and not mine_any:
        return
    spoil(fault, fault.element, data, bits, tau, n, stuck)
    for i in range(n):
        own.message[i] = bits[tau + i]
        own.message[n + i] = owner[i] == me
    publish(me, tick, shared.result, group, own.message[: 2 * n], fault, own.clock)


@njit(cache=True, nogil=True)
def _tick(me: int, tick: int, shared: Shared, own: Private) -> None:
    """One tick: compute, compare, vote, share out."""
    header, fault, pages = own.header[0], own.fault[0], shared.data
    controller = header.controller
    stages = 1
    if redundant(controller):
        stages = 2 if controller == Controller.ECHO else 3
    if not obstruct(me, 0, stages, fault, header, pages, own.clock):
        return
    count = _compute(own)
    group = header.working_set
    if count > 0:
        bits = own.bits[:count]
        if fault.kind == FaultKind.TWO_FACED:
            messages = (shared.data, shared.votes)
            publish_two_faced(me, tick, messages, own.data, bits, fault, header.deadline, own.clock)
        else:
            publish(me, tick, shared.data, 0, bits, fault, own.clock)
        _compare(me, tick, count, shared, own)
        if not obstruct(me, 1, stages, fault, header, pages, own.clock):
            return
        _vote(me, tick, shared, own)
        if controller == Controller.ECHO:
            return
        group = _elect(tick, shared, own)
        if not obstruct(me, 2, stages, fault, header, pages, own.clock):
            return
    _share_out(me, tick, group, shared, own)


@njit(cache=True, nogil=True)
def _take_inputs(me: int, tick: int, shared: Shared, own: Private) -> bool:
    """Copy the inputs of a tick; whether they are those of this tick."""
    slot = tick & 1
    inputs = shared.input
    if load_acquire(inputs.header["tick"], slot) != tick:
        return False
    own.header[0] = inputs.header[slot]
    own.fault[0] = inputs.faults[slot, me]
    for i in range(own.joints.size):
        own.joints[i] = inputs.joints[slot, i]
    fence()
    return load_acquire(inputs.header["tick"], slot) == tick


@njit(cache=True, nogil=True)
def serve(me: int, shared: Shared, own: Private) -> None:
    """Answer every tick until the voter says stop. Waits by sleeping, then yielding.

    Args:
        me: Number of this processor.
        shared: The shared memory; only the own page may be written.
        own: The memory that is private to this process.
    """
    clock, control = own.clock, shared.input.control
    last = load_acquire(control, 0)
    due = 0
    began = now_ns(clock)
    while True:
        tick = load_acquire(control, 0)
        if tick == last:
            if load_acquire(control, 1) != 0:
                return
            now = now_ns(clock)
            if due > now + _LEAD_NS and due < now + 100_000_000:
                sleep_until(clock, due - _LEAD_NS)
                began = now_ns(clock)
            else:
                pause(clock, now - began)
            continue
        last = tick
        if _take_inputs(me, tick, shared, own):
            due = own.header[0].next_due
            _tick(me, tick, shared, own)
        began = now_ns(clock)


def warm(links: Records) -> None:
    """Compile, or load, what a processor runs, before the first one is forked."""
    layout = Layout(3, links.size)
    shared = layout.private()
    shared.input.control[1] = 1  # stop: serve returns at once
    serve(0, shared, Private.of(layout, links))
