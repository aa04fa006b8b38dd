"""The life of a process that is one node: start, signals, compile, spin, end in good order."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.signals import SignalHandlerOptions

from kin_core.errors import InvalidInput
from kin_core.texts import shortened
from kin_core.threads import last_resort, start_thread
from kin_ros.executor import make_executor
from kin_ros.lifecycle import EVENT

if TYPE_CHECKING:
    from kin_ros.node import KinNode

__all__ = ["LEAVING", "PATIENCE", "run"]

#: How long a thread keeps the interpreter while another wants it [s].
_SWITCH_INTERVAL = 1e-4
#: After a signal so long the end may take before its threads are shown [s]; a launch loses patience
#: after five.
PATIENCE = 4.0
#: So long the middleware may take to leave, once the node has wound down [s].
LEAVING = 3.0


def run(node_class: Callable[..., KinNode[Any]], args: list[str] | None = None) -> int:
    """Run one node until SIGINT or SIGTERM; the body of every node's ``main``.

    The signal only wakes the executor, so that the node still has its context while it winds down:
    it can publish a last command and end its children.

    With ``--compile`` among its arguments it only warms up.

    Returns:
        0 after a signal, 1 if the node could not start or failed, 2 for refused parameters.
    """
    stop = threading.Event()
    executors: list[Any] = []
    compiling = "--compile" in (sys.argv if args is None else args)

    def end() -> None:
        if compiling:
            os._exit(128 + signal.SIGINT)  # a compiler holds nothing that must be put away
        if sys.__stderr__ is not None:  # an end that hangs says where
            faulthandler.dump_traceback_later(PATIENCE, file=sys.__stderr__)
        stop.set()
        for executor in executors:
            executor.create_task(lambda: None)  # work, so that spin_once returns

    _on_signal(end)  # before all else: a signal during the start is no reason for a traceback
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    # A worker that the executor has woken waits for the interpreter, by default for up to 5 ms.
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        node = node_class()
    except InvalidInput as error:
        print(f"refused parameter {shortened(str(error))}", file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    if compiling:
        node.ensure_warm()
        node.destroy_node()
        rclpy.try_shutdown()
        return 0
    _report_dead_threads(node)
    executor = make_executor()
    executor.add_node(node)
    executors.append(executor)
    outcome = 0

    def start() -> None:
        nonlocal outcome
        if not stop.is_set() and not node.autostart():
            outcome = 1
            stop.set()

    def warm_up() -> None:
        if node.parameters.autostart:
            with contextlib.suppress(Exception):  # configure meets it again, and says so
                node.ensure_warm()
        executor.create_task(start)

    warming = start_thread("warm-up", warm_up, lambda error: node.failed("warm-up", error))
    try:
        while not stop.is_set():
            try:
                executor.spin_once()
            except ExternalShutdownException:
                break
            except Exception as error:
                node.failed("a callback", error, lasts=EVENT)
    finally:
        node.wind_down()
        _leave_in_time(outcome)
        executor.shutdown(timeout_sec=1.0)
        node.destroy_node()
        rclpy.try_shutdown()
        _ignore_signals()
    if warming.is_alive():
        # A compiler at work can be neither asked to stop nor taken down with the interpreter.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(outcome)
    return outcome


class _TimerEvent(ctypes.Structure):
    """``struct sigevent`` of Linux: what happens when a timer ends."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("rest", ctypes.c_byte * 40),
    )


def _leave_in_time(outcome: int) -> None:
    """End the process soon, whatever the middleware does: nothing of the node is left to do.

    Some ends in a hundred hang while rclpy destroys the node, with the interpreter locked. So this
    is a timer of the C library, which needs no Python: it calls ``_exit(outcome)``. Shortly before,
    the place is shown.
    """
    if sys.__stderr__ is not None:
        faulthandler.dump_traceback_later(0.8 * LEAVING, file=sys.__stderr__)
    library = ctypes.CDLL(None)
    leave = ctypes.cast(library._exit, ctypes.c_void_p).value
    event = _TimerEvent(value=outcome, notify=2, function=leave)  # 2: SIGEV_THREAD
    timer = ctypes.c_void_p()
    if library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)) == 0:
        seconds = int(LEAVING)
        # Interval and time to the end, each in seconds and nanoseconds.
        times = (ctypes.c_long * 4)(0, 0, seconds, int(1e9 * (LEAVING - seconds)))
        library.timer_settime(timer, 0, ctypes.byref(times), None)


def _report_dead_threads(node: KinNode[Any]) -> None:
    """Show in the node's log and diagnostics what ends any thread of this process."""

    def report(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None and arguments.exc_type is not SystemExit:
            name = arguments.thread.name if arguments.thread is not None else "without a name"
            node.failed(f"thread {name}", arguments.exc_value)

    threading.excepthook = report


def _on_signal(act: Callable[[], Any]) -> None:
    """Call ``act`` from a thread on SIGINT or SIGTERM, even while the main thread waits in C."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)

    def watch() -> None:
        while True:
            if os.read(reading, 1)[0] in (signal.SIGINT, signal.SIGTERM):
                act()

    start_thread("signals", watch, last_resort)


def _ignore_signals() -> None:
    """Let a second signal pass: the interpreter, as it ends, gives ours back their deadly default.

    Ctrl-C in a terminal comes twice below ``ros2 launch``: from the terminal and from the launch.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
