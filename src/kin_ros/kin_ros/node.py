"""The lifecycle node that all kinstack nodes are made of.

A subclass gives a parameter class and overrides ``configure``, ``activate``, ``deactivate`` and
``cleanup``; publishers, subscriptions, timers, services and actions made with the methods here
follow the lifecycle by themselves, never block the executor, and answer every request with a
status.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic

from lifecycle_msgs.msg import State
from rcl_interfaces.msg import ParameterDescriptor, ParameterType
from rclpy.action import CancelResponse
from rclpy.lifecycle import LifecycleState
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions

from kin_core.errors import InvalidInput
from kin_core.loop import PeriodicLoop
from kin_core.mailbox import Mailbox
from kin_core.task import Progress
from kin_core.threads import start_thread
from kin_ros.answers import PatientActionServer, send_until_found
from kin_ros.bounds import check_texts
from kin_ros.failures import Guarded
from kin_ros.lifecycle import EVENT, ManagedNode
from kin_ros.parameter_service import AnsweringParameterService
from kin_ros.parameters import P, ParameterListener
from kin_ros.qos import COMMAND, SERVICE, STATE
from kin_ros.requests import OWN, Handler, Manner, answer, make_action_server
from kin_ros.run import run
from kin_ros.worker import Worker

__all__ = ["KinNode", "run"]


#: rclpy declares it without a word.
_SIMULATED = ParameterDescriptor(
    name="use_sim_time",
    type=ParameterType.PARAMETER_BOOL,
    description="take the time from /clock instead of from this machine",
)


class KinNode(ManagedNode, Generic[P]):
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
            self._listener: ParameterListener[P] = ParameterListener(
                self, parameters, self._parameters_changed
            )
        except InvalidInput:
            # Nobody gets this object, so nobody else could take the node out of the graph.
            self.destroy_node()
            raise
        self.diagnostics.hardware_id = self.parameters.hardware_id or self.diagnostics.hardware_id
        self.set_descriptor("use_sim_time", _SIMULATED)
        #: What runs by itself or when a message comes, by its name in logs and diagnostics.
        self.guarded: dict[str, Guarded] = {}
        for server in self.services:  # of parameters and of the life cycle
            send_until_found(self, server)

    def parameters_changed(self, old: P, new: P) -> None:
        """React to an accepted change of parameters."""

    # What a subclass uses ----------------------------------------------------------------------

    @property
    def parameters(self) -> P:
        """The current parameters, frozen."""
        return self._listener.current

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

        guarded = self.guard(f"message on {topic}", take, lasts=EVENT)

        def receive(received: Any) -> None:
            if self._active:
                guarded(received)

        subscription = self.create_subscription(
            message,
            topic,
            receive,
            qos,
            callback_group=self.reentrant_group,
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

    def serve(
        self,
        service: Any,
        name: str,
        handler: Handler,
        *,
        inline: bool = False,
        manner: Manner = OWN,
    ) -> Any:
        """Offer a service whose answer always tells what became of the request.

        Args:
            service: Service type; its response has a field ``status``, or a manner of its own.
            name: Service name, relative to the node with "~/".
            handler: ``handler(request, task) -> response``. Runs in a worker thread. What it raises
                becomes the status of the answer.
            inline: Run on the executor instead; only for work of microseconds.
            manner: How requests name times and answers name errors.
        """
        key = name.removeprefix("~/")

        async def respond(request: Any, response: Any) -> Any:
            return await answer(self, service.Response, request, handler, key, inline, None, manner)

        server = self.create_service(
            service, name, respond, qos_profile=SERVICE, callback_group=self.reentrant_group
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
        server = make_action_server(self, action, name, handler, feedback)
        self._releases.append(server.destroy)
        return server

    def serve_motion(
        self,
        action: Any,
        name: str,
        execute: Callable[[Any], Coroutine[Any, Any, Any]],
        cancel: Callable[[Any], None],
    ) -> PatientActionServer:
        """Offer an action whose goals take as long as something moves.

        Args:
            action: Action type.
            name: Action name, relative to the node with "~/".
            execute: ``execute(goal handle) -> result``, a coroutine on the executor: it awaits what
                takes time, and says itself how the goal ended.
            cancel: Called with the goal handle when somebody cancels.
        """

        def accept_cancel(goal: Any) -> CancelResponse:
            cancel(goal)
            return CancelResponse.ACCEPT

        server = PatientActionServer(
            self,
            action,
            name,
            execute,
            callback_group=self.reentrant_group,
            cancel_callback=accept_cancel,
            result_timeout=60,
        )
        self._releases.append(server.destroy)
        return server

    def autostarts(self) -> bool:
        """Whether the parameter says that the node is to start by itself."""
        return self.parameters.autostart

    def _parameters_changed(self, old: P, new: P) -> None:
        if self._worker is not None:
            self._worker.queue_limit = new.queue_limit
        self._guard("parameters", lambda: self.parameters_changed(old, new))
