"""The lifecycle node that all kinstack nodes are made of.

A subclass gives a parameter class and overrides ``configure``, ``activate``, ``deactivate`` and
``cleanup``; publishers, subscriptions, timers, services and actions made with the methods here
follow the lifecycle by themselves, never block the executor, and answer every request with a
status.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, Generic

import rclpy
from kin_interfaces.msg import SolveStatus
from lifecycle_msgs.msg import State
from rclpy.action import CancelResponse, GoalResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.signals import SignalHandlerOptions

from kin_core.errors import InvalidInput, KinError, StatusCode
from kin_core.loop import PeriodicLoop
from kin_core.mailbox import Mailbox
from kin_core.task import Progress, Task
from kin_core.texts import shortened
from kin_core.threads import last_resort, start_thread
from kin_ros.answers import PatientActionServer, send_until_found
from kin_ros.bounds import check_texts
from kin_ros.diagnostics import Diagnostics
from kin_ros.executor import make_executor
from kin_ros.guarded import Guarded
from kin_ros.parameter_service import AnsweringParameterService
from kin_ros.parameters import P, ParameterBoard
from kin_ros.qos import COMMAND, SERVICE, STATE
from kin_ros.status import fill_status
from kin_ros.worker import Worker

__all__ = ["KinNode", "run"]

#: Feedback is sent at most this often [s].
_FEEDBACK_PERIOD = 0.05

#: How long a thread keeps the interpreter while another wants it [s].
_SWITCH_INTERVAL = 1e-4

#: The same failure is logged again after so long, with a count of those in between [s].
_LOG_PAUSE = 5.0

#: How long a failed message, button or change of parameters counts if no other one follows [s].
_EVENT = 30.0

#: Failures that are remembered so that they are not logged at every tick.
_REMEMBERED = 100

#: Fields by which a request says how long it may take [s]: to be solved, or to wait for something.
_TIME_LIMITS = ("timeout", "wait")

Handler = Callable[[Any, Task], Any]


class KinNode(LifecycleNode, Generic[P]):
    """A lifecycle node with typed parameters, workers, statuses and diagnostics."""

    def __init__(self, name: str, parameters: type[P], **node_arguments: Any) -> None:
        """Declare the parameters; nothing else happens before ``configure``.

        Args:
            name: Node name; a launch file may rename it.
            parameters: The node's parameter class.
            node_arguments: What ``rclpy.node.Node`` takes: context, namespace, parameter_overrides.

        Raises:
            InvalidInput: A parameter is refused; the message says why.
        """
        own_services = node_arguments.pop("start_parameter_services", True)
        super().__init__(name, start_parameter_services=False, **node_arguments)
        if own_services:
            self._parameter_service = AnsweringParameterService(self)
        try:
            self._board: ParameterBoard[P] = ParameterBoard(
                self, parameters, self._parameters_changed
            )
        except InvalidInput:
            # Nobody gets this object, so nobody else could take the node out of the graph.
            self.destroy_node()
            raise
        self._group = ReentrantCallbackGroup()
        self._releases: list[Callable[[], None]] = []
        self._timers_when_active: list[tuple[float, Guarded, bool]] = []
        self._running_timers: list[Any] = []
        self._mailboxes: list[Mailbox[Any]] = []
        self._active = False
        self._worker: Worker | None = None
        self._warm = False
        self._warming = threading.Lock()
        self.diagnostics = Diagnostics(self)
        #: What runs by itself or when a message comes, by its name in logs and diagnostics.
        self.guarded: dict[str, Guarded] = {}
        self._failures_logged: dict[tuple[str, type, str], tuple[float, int]] = {}
        self._failures_lock = threading.Lock()
        _answer_every_transition(self)
        for server in self.services:  # of parameters and of the life cycle
            send_until_found(self, server)

    # What a subclass overrides -----------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile, or load from the cache, what requests will run.

        Called once, before the first ``configure``; by ``run`` in a thread of its own, so that the
        node answers questions about its state and obeys signals while it compiles. It must touch
        neither the graph nor what the node keeps.
        """

    def configure(self) -> None:
        """Check parameters against the world, allocate, compile, make services and topics."""

    def activate(self) -> None:
        """Start acting."""

    def deactivate(self) -> None:
        """Stop acting; keep what configure made."""

    def cleanup(self) -> None:
        """Release what configure made; resources of the methods below go by themselves."""

    def parameters_changed(self, old: P, new: P) -> None:
        """React to an accepted change of parameters."""

    # What a subclass uses ----------------------------------------------------------------------

    @property
    def parameters(self) -> P:
        """The current parameters, frozen."""
        return self._board.current

    @property
    def active(self) -> bool:
        """Whether the node is in the state active."""
        return self._active

    @property
    def worker(self) -> Worker:
        """The threads that solve requests; made when first used."""
        if self._worker is None:
            now = self.parameters
            self._worker = Worker(self, now.worker_threads, now.queue_limit)
        return self._worker

    def publish_to(self, message: type, topic: str, qos: QoSProfile | int = STATE) -> Any:
        """Make a publisher that is silent unless the node is active."""
        publisher = self.create_lifecycle_publisher(
            message, topic, qos, qos_overriding_options=QoSOverridingOptions.with_default_policies()
        )
        self._releases.append(lambda: self.destroy_lifecycle_publisher(publisher))
        if self._active:  # nobody else would enable one that is made so late
            publisher.on_activate(LifecycleState(State.PRIMARY_STATE_ACTIVE, "active"))
        return publisher

    def listen(
        self,
        message: type,
        topic: str,
        callback: Callable[[Any], None],
        qos: QoSProfile | int = COMMAND,
    ) -> Any:
        """Subscribe; the callback is called only while the node is active, and may raise.

        An exception becomes a warning in the log and a fault in the diagnostics; the next message
        is handled as if nothing had happened.
        """

        def take(received: Any) -> None:
            check_texts(received)
            callback(received)

        guarded = self.guard(f"message on {topic}", take, lasts=_EVENT)

        def receive(received: Any) -> None:
            if self._active:
                guarded(received)

        subscription = self.create_subscription(
            message,
            topic,
            receive,
            qos,
            callback_group=self._group,
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._releases.append(lambda: self.destroy_subscription(subscription))
        return subscription

    def every(self, period: float, callback: Callable[[], None], *, steady: bool = False) -> None:
        """Call a function each period [s] while the node is active.

        Args:
            period: Time between calls [s], of the node's clock.
            callback: What to do; what it raises is logged and shown, and the next call comes.
            steady: Use the machine's steady clock instead, which simulated time does not stop.
        """
        what = getattr(callback, "__name__", "").strip("_") or "callback"
        entry = (period, self.guard(f"timer {what}", callback), steady)
        self._timers_when_active.append(entry)
        self._releases.append(lambda: self._timers_when_active.remove(entry))
        if self._active:
            self._start_timer(entry)

    def loop(self, name: str, period: float, callback: Callable[[], None]) -> PeriodicLoop:
        """Make a loop with a thread and absolute deadlines; to be started and stopped by its owner.

        What the callback raises is logged and shown in the diagnostics; the loop goes on.

        Args:
            name: Of the loop, in logs and diagnostics.
            period: Time between ticks [s].
            callback: What to do each tick.
        """
        what = f"loop {name}"
        return PeriodicLoop(
            period, self.guard(what, callback), name=name, on_error=lambda e: self.failed(what, e)
        )

    def mailbox(
        self, name: str, handle: Callable[[Any], object], *, limit: int = 1
    ) -> Mailbox[Any]:
        """Make a thread that handles items, the newest first to stay, while the executor goes on.

        What waits is forgotten when the node is deactivated; the thread ends with the other
        resources. What ``handle`` raises is logged and shown in the diagnostics.

        Args:
            name: Of the mailbox, in logs and diagnostics.
            handle: What to do with an item; called only while the node is active.
            limit: Items that may wait; with 1 the last one wins.
        """
        guarded = self.guard(name, handle)

        def take(item: Any) -> None:
            if self._active:
                guarded(item)

        box: Mailbox[Any] = Mailbox(
            name, take, on_error=lambda error: self.failed(name, error), limit=limit
        )
        self._mailboxes.append(box)
        return box

    def thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        """Start a thread; what ends it is logged and shown in the diagnostics."""
        what = f"thread {name}"
        return start_thread(name, self.guard(what, target), lambda e: self.failed(what, e))

    def guard(self, what: str, action: Callable[..., Any], *, lasts: float = math.inf) -> Guarded:
        """Wrap a callback that must not take the node down, nor fail unseen.

        Args:
            what: Names it in the log and the diagnostics; the same name replaces an earlier one.
            action: What to call.
            lasts: How long a failure counts if no other call follows [s].
        """
        made = Guarded(what, action, self, lasts)
        self.guarded[what] = made
        return made

    def failed(self, what: str, error: BaseException, *, lasts: float = math.inf) -> None:
        """Log a failure that the node survives and show it in the diagnostics; any thread.

        Args:
            what: What failed.
            error: What it raised.
            lasts: How long the failure counts if nothing of that name goes well [s].
        """
        foreseen = isinstance(error, KinError)
        said = str(error) if foreseen else f"{type(error).__name__}: {error}"
        text = shortened(f"{what}: {said}", 500)
        self.diagnostics.fault(text, warning=foreseen, source=what, lasts=lasts)
        self.diagnostics.count(f"{shortened(what, 100)} failed")
        key = (what, type(error), said[:100])
        now = time.monotonic()
        with self._failures_lock:
            last, kept_back = self._failures_logged.pop(key, (-math.inf, 0))
            quiet = now - last < _LOG_PAUSE
            self._failures_logged[key] = (last, kept_back + 1) if quiet else (now, 0)
            while len(self._failures_logged) > _REMEMBERED:
                del self._failures_logged[next(iter(self._failures_logged))]
        if quiet:
            return
        again = f" ({kept_back} more since it was last logged)" if kept_back else ""
        if foreseen:
            self.get_logger().warning(f"{text}{again}")
        else:
            trace = "".join(traceback.format_exception(error))
            self.get_logger().error(f"{what}{again}:\n{shortened(trace, 8000)}")

    def recovered(self, what: str) -> None:
        """Take back what ``failed`` said, after it has been shown for some seconds; any thread."""
        self.diagnostics.recovered(what)

    def serve(self, service: Any, name: str, handler: Handler, *, inline: bool = False) -> Any:
        """Offer a service whose answer always holds a status.

        Args:
            service: Service type; its response has a field ``status``.
            name: Service name, relative to the node with "~/".
            handler: ``handler(request, task) -> response``. Runs in a worker thread. What it raises
                becomes the status of the answer.
            inline: Run on the executor instead; only for work of microseconds.
        """
        key = name.removeprefix("~/")

        async def answer(request: Any, response: Any) -> Any:
            return await self._answer(service.Response, request, handler, key, inline, None)

        server = self.create_service(
            service, name, answer, qos_profile=SERVICE, callback_group=self._group
        )
        send_until_found(self, server)
        self._releases.append(lambda: self.destroy_service(server))
        return server

    def serve_action(
        self,
        action: Any,
        name: str,
        handler: Handler,
        feedback: Callable[[Progress], Any],
    ) -> PatientActionServer:
        """Offer an action with progress and cancel.

        Args:
            action: Action type; its result has a field ``status``.
            name: Action name, relative to the node with "~/".
            handler: ``handler(goal, task) -> result``, run in a worker thread.
            feedback: Turns a progress report into the action's feedback message.
        """
        key = name.removeprefix("~/")
        tasks: dict[bytes, Task] = {}

        def cancel(goal: Any) -> CancelResponse:
            task = tasks.get(bytes(goal.goal_id.uuid))
            if task is not None:
                task.cancel()
            return CancelResponse.ACCEPT

        async def execute(goal: Any) -> Any:
            last = 0.0

            def report(progress: Progress) -> None:
                nonlocal last
                now = time.monotonic()
                if (now - last >= _FEEDBACK_PERIOD or progress.fraction >= 1.0) and goal.is_active:
                    last = now
                    goal.publish_feedback(feedback(progress))

            task = Task(self._time_allowed(goal.request), report)
            identity = bytes(goal.goal_id.uuid)
            tasks[identity] = task
            if goal.is_cancel_requested:
                task.cancel()
            try:
                result = await self._answer(action.Result, goal.request, handler, key, False, task)
            finally:
                del tasks[identity]
            code = result.status.code
            if goal.is_cancel_requested and code in (
                StatusCode.CANCELLED,
                StatusCode.SUCCESS,
            ):
                goal.canceled()
            elif code == StatusCode.SUCCESS:
                goal.succeed()
            else:
                goal.abort()
            return result

        def accept(_: Any) -> GoalResponse:
            return GoalResponse.ACCEPT

        server = PatientActionServer(
            self,
            action,
            name,
            execute,
            callback_group=self._group,
            goal_callback=accept,
            cancel_callback=cancel,
            result_timeout=60,
        )
        self._releases.append(server.destroy)
        return server

    # Lifecycle ---------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run ``configure``; a failure leaves the node unconfigured and clean."""

        def hook() -> None:
            self.ensure_warm()
            self.configure()

        result = self._transition("configure", hook, state, super().on_configure)
        if result != TransitionCallbackReturn.SUCCESS:
            self._release()
        else:
            self.diagnostics.state("inactive")
        return result

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Enable publishers, run ``activate``, start the timers."""
        self.diagnostics.clear()
        result = self._transition("activate", self.activate, state, super().on_activate)
        if result == TransitionCallbackReturn.SUCCESS:
            self._active = True
            for entry in self._timers_when_active:
                self._start_timer(entry)
            self.diagnostics.state("active")
            self.get_logger().info("active")
        else:
            super().on_deactivate(state)
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the timers, cancel running solves, run ``deactivate``."""
        self._stop_acting()
        result = self._transition("deactivate", self.deactivate, state, super().on_deactivate)
        self.diagnostics.state("inactive")
        return result

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Run ``cleanup`` and release every resource."""
        self._close_mailboxes()
        result = self._transition("cleanup", self.cleanup, state, super().on_cleanup)
        self._release()
        self.diagnostics.state("unconfigured")
        return result

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release everything, whatever the state."""
        self._wind_down(state.label)
        self.diagnostics.state("finalized")
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After an unforeseen exception: release everything and be unconfigured again."""
        self._wind_down(state.label)
        self.diagnostics.state("unconfigured")
        return TransitionCallbackReturn.SUCCESS

    def autostart(self) -> bool:
        """Configure and activate if the parameter says so; return whether all went well."""
        if not self.parameters.autostart:
            return True
        good = TransitionCallbackReturn.SUCCESS
        return self.trigger_configure() == good and self.trigger_activate() == good

    def ensure_warm(self) -> None:
        """Run ``warm_up`` unless that was done; wait for it if it is going on elsewhere."""
        with self._warming:
            if not self._warm:
                self.diagnostics.state("compiling")
                try:
                    self.warm_up()
                finally:
                    self.diagnostics.state("unconfigured")
                self._warm = True

    def wind_down(self) -> None:
        """Leave every state in good order; used when the process ends."""
        self._wind_down(self._state_machine.current_state[1])

    def destroy_node(self) -> None:
        """Leave the graph now; rclpy's state machine would hold the node there for a while."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    # Inside ------------------------------------------------------------------------------------

    def _transition(
        self,
        name: str,
        hook: Callable[[], None],
        state: LifecycleState,
        inherited: Callable[[LifecycleState], TransitionCallbackReturn],
    ) -> TransitionCallbackReturn:
        """Run the inherited step and the hook; log what a hook raises, which rclpy swallows."""
        try:
            result = inherited(state)
            if result == TransitionCallbackReturn.SUCCESS:
                hook()
            return result
        except KinError as error:
            self.get_logger().error(shortened(f"cannot {name}: {error}"))
            self.diagnostics.fault(f"cannot {name}: {error}")
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            self.get_logger().error(f"cannot {name}:\n{traceback.format_exc()}")
            self.diagnostics.fault(f"cannot {name}: {type(error).__name__}: {error}")
            return TransitionCallbackReturn.ERROR

    def _wind_down(self, label: str) -> None:
        if self._active or label in ("active", "activating", "deactivating"):
            self._stop_acting()
            self._guard("deactivate", self.deactivate)
        self._close_mailboxes()
        if label != "unconfigured":
            self._guard("cleanup", self.cleanup)
        self._release()

    def _stop_acting(self) -> None:
        self._active = False
        for timer in self._running_timers:
            self.destroy_timer(timer)
        self._running_timers.clear()
        for box in self._mailboxes:
            box.clear()
        if self._worker is not None:
            self._worker.cancel_all()

    def _close_mailboxes(self) -> None:
        """End their threads before ``cleanup`` takes away what they work with."""
        for box in self._mailboxes:
            box.close()
        self._mailboxes.clear()

    def _release(self) -> None:
        self._close_mailboxes()
        for release in reversed(self._releases):
            self._guard("cleanup", release)
        self._releases.clear()
        if self._worker is not None:
            self._worker.shutdown()
            self._worker = None

    def _start_timer(self, entry: tuple[float, Guarded, bool]) -> None:
        period, guarded, steady = entry
        clock = Clock(clock_type=ClockType.STEADY_TIME) if steady else None

        def tick() -> None:
            if self._active:
                guarded()

        self._running_timers.append(
            self.create_timer(period, tick, callback_group=self._group, clock=clock)
        )

    def _guard(self, what: str, action: Callable[[], Any]) -> None:
        """Run something once that must not take the node down."""
        Guarded(what, action, self, _EVENT)()

    def _parameters_changed(self, old: P, new: P) -> None:
        if self._worker is not None:
            self._worker.queue_limit = new.queue_limit
        self._guard("parameters", lambda: self.parameters_changed(old, new))

    def _time_allowed(self, request: Any) -> float:
        """Return the time that a request allows itself [s]; nonsense is refused later."""
        asked = getattr(request, "timeout", 0.0)
        if asked > 0.0:
            return float(asked)
        wait = getattr(request, "wait", 0.0)
        return self.parameters.default_timeout + (wait if wait > 0.0 else 0.0)

    def _check_time_limits(self, request: Any) -> None:
        """Refuse a request that could hold a worker for as long as it likes."""
        longest = self.parameters.max_timeout
        for name in _TIME_LIMITS:
            asked = getattr(request, name, 0.0)
            if not 0.0 <= asked <= longest:
                raise InvalidInput(
                    name,
                    f"must be between 0 and {longest:g} s (the node's parameter max_timeout),"
                    f" got {asked:g}",
                )

    async def _answer(
        self,
        response_type: type,
        request: Any,
        handler: Handler,
        key: str,
        inline: bool,
        task: Task | None,
    ) -> Any:
        """Run a handler and return its answer, or an empty one whose status tells what happened."""
        start = time.monotonic()
        try:
            if not self._active:
                raise KinError(
                    f"the node {self.get_fully_qualified_name()} is not active; activate it first"
                )
            self._check_time_limits(request)
            check_texts(request)
            task = task or Task(self._time_allowed(request))
            if inline:
                response = handler(request, task)
            else:
                response = await self.worker.run(lambda t: handler(request, t), task)
        except Exception as error:
            if not isinstance(error, KinError):
                trace = "".join(traceback.format_exception(error))
                self.get_logger().error(f"{key}:\n{shortened(trace, 8000)}")
            response = response_type()
            fill_status(response.status, error)
            self.diagnostics.count(f"{key} refused")
        status: SolveStatus = response.status
        status.solve_time = time.monotonic() - start
        self.diagnostics.time(key, status.solve_time)
        return response


def _answer_every_transition(node: LifecycleNode) -> None:
    """Have ``change_state`` answer also what rclpy lets fall: a transition that is not possible."""
    server = next(s for s in node.services if s.srv_name.endswith("/change_state"))
    change = server.callback

    def answer(request: Any, response: Any) -> Any:
        try:
            return change(request, response)
        except Exception as error:
            wanted = shortened(request.transition.label, 100) or str(request.transition.id)
            label = node._state_machine.current_state[1]
            node.get_logger().warning(
                f"change_state: the transition {wanted!r} is not possible in the state {label}"
                f" ({shortened(str(error).splitlines()[0] if str(error) else '', 200)})"
            )
            response.success = False
            return response

    server.callback = answer


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
                node.failed("a callback", error, lasts=_EVENT)
    finally:
        node.wind_down()
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
