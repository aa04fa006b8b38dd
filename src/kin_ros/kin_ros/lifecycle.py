"""The lifecycle of a node: its hooks, its transitions, and what goes with each of them."""

from __future__ import annotations

import math
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from kin_core.errors import KinError
from kin_core.kernels import LATER
from kin_core.mailbox import Mailbox
from kin_core.texts import shortened
from kin_ros.bets import Bet
from kin_ros.diagnostics import Diagnostics
from kin_ros.failures import FailureLog, Guarded
from kin_ros.worker import Worker

__all__ = ["EVENT", "ManagedNode"]

#: How long a failed message, button or change of parameters counts if no other one follows [s].
EVENT = 30.0

_BET = Bet(
    name="nodes that leave the graph at once",
    otherwise="a destroyed node may stay in the graph for a while",
)


class ManagedNode(LifecycleNode):
    """A lifecycle node whose resources follow its state.

    What ``configure`` makes goes with ``cleanup``; timers run and mailboxes are read only while the
    node is active; what a hook raises is logged, shown in the diagnostics and ends the transition.
    """

    def __init__(self, name: str, **node_arguments: Any) -> None:
        super().__init__(name, **node_arguments)
        #: The callback group of what the node makes.
        self.reentrant_group = ReentrantCallbackGroup()
        self._releases: list[Callable[[], None]] = []
        self._timers_when_active: list[tuple[float, Guarded, bool]] = []
        self._running_timers: list[Any] = []
        self._mailboxes: list[Mailbox[Any]] = []
        self._active = False
        self._worker: Worker | None = None
        self._warm = False
        self._warming = threading.Lock()
        self.diagnostics = Diagnostics(self)
        self._failures = FailureLog(self.get_logger(), self.diagnostics)
        _answer_every_transition(self)

    # What a subclass overrides -----------------------------------------------------------------

    def warm_up(self) -> None:
        """Compile, or load from the cache, what every run and the first requests need.

        Called once, before the first ``configure``; by ``run`` in a thread of its own, so that the
        node answers questions about its state and obeys signals while it compiles. It must touch
        neither the graph nor what the node keeps.
        """

    def warm_up_more(self) -> None:
        """Compile, or load from the cache, what other requests will run.

        Called after ``warm_up``, unless the environment says that this is done elsewhere; then such
        a request loads its kernels, or compiles them, when it comes.
        """

    def configure(self) -> None:
        """Check parameters against the world, allocate, compile, make services and topics."""

    def activate(self) -> None:
        """Start acting."""

    def deactivate(self) -> None:
        """Stop acting; keep what configure made."""

    def cleanup(self) -> None:
        """Release what configure made; resources of the methods below go by themselves."""

    def autostarts(self) -> bool:
        """Whether the node is to configure and activate itself."""
        return True

    # Failures ----------------------------------------------------------------------------------

    def failed(self, what: str, error: BaseException, *, lasts: float = math.inf) -> None:
        """Log a failure that the node survives and show it in the diagnostics; any thread.

        Args:
            what: What failed.
            error: What it raised.
            lasts: How long the failure counts if nothing of that name goes well [s].
        """
        self._failures.failed(what, error, lasts=lasts)

    def recovered(self, what: str) -> None:
        """Take back what ``failed`` said, after it has been shown for some seconds; any thread."""
        self.diagnostics.recovered(what)

    # Transitions -------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether the node is in the state active."""
        return self._active

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

    def on_release(self, release: Callable[[], None]) -> None:
        """Have a function called when what ``configure`` made is released, the last one first."""
        self._releases.append(release)

    def autostart(self) -> bool:
        """Configure and activate if the parameter says so; return whether all went well."""
        if not self.autostarts():
            return True
        good = TransitionCallbackReturn.SUCCESS
        return self.trigger_configure() == good and self.trigger_activate() == good

    def ensure_warm(self) -> None:
        """Run the warm-up unless that was done; wait for it if it is going on elsewhere."""
        with self._warming:
            if not self._warm:
                self.diagnostics.state("compiling")
                try:
                    self.warm_up()
                    if LATER not in os.environ:
                        self.warm_up_more()
                finally:
                    self.diagnostics.state("unconfigured")
                self._warm = True

    def wind_down(self) -> None:
        """Leave every state in good order; used when the process ends."""
        self._wind_down(self._state_machine.current_state[1])

    def destroy_node(self) -> None:
        """Leave the graph now; rclpy's state machine would hold the node there for a while."""
        super().destroy_node()
        if _BET.holds((self, "_state_machine"), (self._state_machine, "destroy_when_not_in_use")):
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
            self.create_timer(period, tick, callback_group=self.reentrant_group, clock=clock)
        )

    def _guard(self, what: str, action: Callable[[], Any]) -> None:
        """Run something once that must not take the node down."""
        Guarded(what, action, self, EVENT)()


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
