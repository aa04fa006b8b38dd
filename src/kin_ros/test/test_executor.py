"""The lean executor does what rclpy's does, which is tested beside it, and waits less often."""

import threading
import time

import pytest
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from kin_ros import executor as module
from kin_ros.bets import BETS
from kin_ros.executor import LeanExecutor, make_executor
from kin_testing.fixtures import wait_until

pytestmark = pytest.mark.node


class Bench:
    """A node on an executor that the test turns by hand."""

    def __init__(self, kind, domain):
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = Node("bench", context=self.context, start_parameter_services=False)
        self.executor = kind(context=self.context)
        self.executor.add_node(self.node)

    def until(self, condition, timeout=20.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "not in time"
            self.executor.spin_once(timeout_sec=0.05)

    def idle(self, rounds=5):
        """Let what is on its way arrive."""
        for _ in range(rounds):
            self.executor.spin_once(timeout_sec=0.05)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()


def tell(future):
    """How a future is awaited since rclpy 7.1.9: it tells what is waited for, and only once."""
    if not future.done():
        yield future
    if not future.done():
        raise RuntimeError("awaited a second time before it was done")
    return future.result()


@pytest.fixture(params=["rclpy", "lean", "lean, rclpy 7.1.9"])
def bench(request, ros, monkeypatch):
    if "7.1.9" in request.param:
        monkeypatch.setattr(Future, "__await__", tell)
    kind = SingleThreadedExecutor if request.param == "rclpy" else LeanExecutor
    made = Bench(kind, ros.domain)
    yield made
    made.close()


@pytest.fixture(params=["asked", "told"])
def lean(request, ros, monkeypatch):
    if request.param == "told":
        monkeypatch.setattr(Future, "__await__", tell)
    made = Bench(LeanExecutor, ros.domain)
    yield made
    made.close()


def talker(bench, topic="chat"):
    """A topic of the node to itself, found, and what it hears."""
    heard = []
    publisher = bench.node.create_publisher(Float64, topic, 100)
    subscription = bench.node.create_subscription(
        Float64, topic, lambda message: heard.append(message.data), 100
    )
    bench.until(lambda: publisher.get_subscription_count() == 1)
    return publisher, subscription, heard


def test_messages_timers_services_and_guards(bench):
    publisher, _, heard = talker(bench)
    ticks = []
    bench.node.create_timer(0.01, lambda: ticks.append(time.monotonic()))
    bench.node.create_service(
        Trigger, "ask", lambda request, response: Trigger.Response(message="well")
    )
    woken = []
    guard = bench.node.create_guard_condition(lambda: woken.append(1))
    client = bench.node.create_client(Trigger, "ask")
    bench.until(client.service_is_ready)
    for number in range(20):
        publisher.publish(Float64(data=float(number)))
    answer = client.call_async(Trigger.Request())
    guard.trigger()
    bench.until(lambda: len(heard) == 20 and answer.done() and woken and len(ticks) > 3)
    assert heard == [float(number) for number in range(20)]
    assert answer.result().message == "well"
    assert woken == [1]
    bench.idle()
    assert woken == [1]  # a guard is handled once


def test_what_comes_and_goes_while_it_spins(bench):
    """From callbacks and from another thread; what went is gone from the graph."""
    publisher, subscription, heard = talker(bench)
    late = []

    def add(message):
        if not late:
            late.append(bench.node.create_timer(0.01, lambda: late.append("tick")))

    bench.node.create_subscription(Float64, "chat", add, 100)
    bench.until(lambda: publisher.get_subscription_count() == 2)
    publisher.publish(Float64(data=1.0))
    bench.until(lambda: len(late) > 3)
    bench.node.destroy_timer(late[0])
    bench.idle()
    ticks = len(late)
    bench.idle()
    assert len(late) == ticks

    thread = threading.Thread(target=lambda: bench.node.destroy_subscription(subscription))
    thread.start()
    bench.until(lambda: publisher.get_subscription_count() == 1)
    thread.join()
    publisher.publish(Float64(data=2.0))
    bench.idle()
    assert heard == [1.0]


def test_an_entity_made_by_another_thread_ends_a_wait_for_ever(bench):
    ticks = []
    done = threading.Event()

    def spin():
        while not done.is_set():
            bench.executor.spin_once()

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    time.sleep(0.2)  # it waits, for nothing
    bench.node.create_timer(0.01, lambda: ticks.append(1))
    wait_until(lambda: len(ticks) > 3, 60.0, "a timer made while it waited")
    done.set()
    thread.join(10.0)
    assert not thread.is_alive()


def test_a_callback_that_destroys_another_that_is_ready(bench):
    """Both are ready in the same round; whichever is first takes the other away."""
    timers = []
    called = []

    def tick(number):
        called.append(number)
        bench.node.destroy_timer(timers[1 - number])

    timers += [bench.node.create_timer(0.02, lambda n=n: tick(n)) for n in (0, 1)]
    time.sleep(0.05)
    bench.until(lambda: len(called) > 3)
    assert len(set(called)) == 1


def test_coroutines_wait_without_holding_others(bench):
    """A service that awaits; its group may be entered again only when it has answered."""
    release = Future()
    order = []
    group = MutuallyExclusiveCallbackGroup()

    async def slow(request, response):
        order.append("begun")
        await release
        order.append("ended")
        return Trigger.Response(message="late")

    bench.node.create_service(Trigger, "slow", slow, callback_group=group)
    bench.node.create_service(
        Trigger,
        "next",
        lambda request, response: (order.append("next"), Trigger.Response())[1],
        callback_group=group,
    )
    bench.node.create_service(
        Trigger,
        "free",
        lambda request, response: (order.append("free"), Trigger.Response())[1],
        callback_group=ReentrantCallbackGroup(),
    )
    clients = {
        name: bench.node.create_client(Trigger, name, callback_group=ReentrantCallbackGroup())
        for name in ("slow", "next", "free")
    }
    bench.until(lambda: all(client.service_is_ready() for client in clients.values()))
    first = clients["slow"].call_async(Trigger.Request())
    bench.until(lambda: order == ["begun"])
    second = clients["next"].call_async(Trigger.Request())
    third = clients["free"].call_async(Trigger.Request())
    bench.until(third.done)
    bench.idle()
    assert not first.done() and not second.done()
    release.set_result(None)
    bench.executor.wake()
    bench.until(lambda: first.done() and second.done())
    assert order == ["begun", "free", "ended", "next"]


@pytest.mark.parametrize("swap", [False, True])
def test_tasks_that_await_each_other_all_end(lean, swap):
    """In whichever order they are asked, with nothing else that would wake the executor.

    rclpy's own waits for ever in one of the orders.
    """
    gate, between = Future(), Future()
    ended = []

    async def first():
        await gate
        between.set_result(7)
        ended.append("first")

    async def second():
        ended.append(await between)

    for task in (second, first) if swap else (first, second):
        lean.executor.create_task(task)
    lean.idle()

    def spin():
        while len(ended) < 2:
            lean.executor.spin_once()

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    time.sleep(0.2)
    gate.set_result(None)
    lean.executor.wake()
    thread.join(10.0)
    assert sorted(map(str, ended)) == ["7", "first"]
    assert not thread.is_alive()


def test_time_limits(bench):
    start = time.monotonic()
    bench.executor.spin_once(timeout_sec=0.0)
    bench.executor.spin_once(timeout_sec=0.2)
    assert time.monotonic() - start >= 0.19
    future = Future()
    start = time.monotonic()
    bench.executor.spin_until_future_complete(future, timeout_sec=0.2)
    assert time.monotonic() - start >= 0.19 and not future.done()
    bench.node.create_timer(0.01, lambda: future.set_result(3))
    bench.executor.spin_until_future_complete(future, timeout_sec=20.0)
    assert future.result() == 3


def test_a_long_callback_takes_nothing_from_the_next_wait(lean):
    """Each call has its own limit, whatever the last one did."""
    publisher, _, heard = talker(lean)
    lean.node.create_subscription(Float64, "chat", lambda message: time.sleep(0.1), 100)
    lean.until(lambda: publisher.get_subscription_count() == 2)
    publisher.publish(Float64(data=1.0))
    lean.until(lambda: heard == [1.0])
    lean.idle()
    for limit in (0.05, 0.0):
        publisher.publish(Float64(data=2.0))
        time.sleep(0.2)  # it is there
        before = len(heard)
        for _ in range(2):  # one callback each, the slow one among them
            lean.executor.spin_once(timeout_sec=limit)
        assert len(heard) == before + 1
        publisher.publish(Float64(data=3.0))
        time.sleep(0.2)
        for _ in range(2):
            lean.executor.spin_once(timeout_sec=limit)
        assert len(heard) == before + 2


def test_what_a_callback_raises_reaches_the_caller_and_the_next_one_is_called(bench):
    publisher, _, heard = talker(bench)

    def fail(message):
        raise ValueError(message.data)

    bench.node.create_subscription(Float64, "chat", fail, 100)
    bench.until(lambda: publisher.get_subscription_count() == 2)
    for number in (1.0, 2.0):
        publisher.publish(Float64(data=number))
        with pytest.raises(ValueError, match=str(number)):
            bench.until(lambda: False)
    bench.until(lambda: heard == [1.0, 2.0])


def test_two_nodes_and_one_that_leaves(bench):
    publisher, _, heard = talker(bench)
    other = Node("other", context=bench.context, start_parameter_services=False)
    bench.executor.add_node(other)
    also = []
    other.create_subscription(Float64, "chat", lambda message: also.append(message.data), 100)
    bench.until(lambda: publisher.get_subscription_count() == 2)
    publisher.publish(Float64(data=1.0))
    bench.until(lambda: heard == [1.0] and also == [1.0])
    bench.executor.remove_node(other)
    publisher.publish(Float64(data=2.0))
    bench.until(lambda: heard == [1.0, 2.0])
    bench.idle()
    assert also == [1.0]
    other.destroy_node()


def test_the_end_of_the_context_and_of_the_executor(bench):
    ended = []

    def spin():
        try:
            while True:
                bench.executor.spin_once()
        except ExternalShutdownException:
            ended.append("context")

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    time.sleep(0.2)
    bench.context.try_shutdown()
    thread.join(10.0)
    assert ended == ["context"]


def test_one_wait_for_each_message_and_one_wait_set_for_all(lean, monkeypatch):
    publisher, _, heard = talker(lean)
    lean.idle()
    waits, sets = [], []
    wait, make = module.WaitSet.wait, module.WaitSet.__init__
    monkeypatch.setattr(
        module.WaitSet, "wait", lambda self, limit: (waits.append(1), wait(self, limit))[1]
    )
    monkeypatch.setattr(
        module.WaitSet, "__init__", lambda self, *a: (sets.append(1), make(self, *a))[1]
    )
    for number in range(50):
        publisher.publish(Float64(data=float(number)))
        lean.until(lambda wanted=number + 1: len(heard) == wanted)
    assert len(waits) <= 60  # rclpy's would take over a hundred
    assert not sets


def test_guards_that_were_ready_when_somebody_stopped_asking(lean):
    """Another question (another limit) begins anew; a guard that was due is not forgotten."""
    woken = []
    guards = [lean.node.create_guard_condition(lambda n=n: woken.append(n)) for n in range(3)]
    for guard in guards:
        guard.trigger()
    lean.executor.spin_once(timeout_sec=5.0)
    assert len(woken) == 1
    lean.executor.spin_once(timeout_sec=4.0)
    lean.executor.spin_once(timeout_sec=3.0)
    assert sorted(woken) == [0, 1, 2]


def test_where_rclpy_is_another_its_own_executor_is_used_and_the_log_says_so(
    ros, monkeypatch, capfd
):
    made = make_executor(ros.context)
    assert isinstance(made, LeanExecutor)
    made.shutdown()
    monkeypatch.setattr(module, "INSIDE", (*module.INSIDE, "_something_new"))
    made = make_executor(ros.context)
    assert type(made) is SingleThreadedExecutor
    made.shutdown()
    written = capfd.readouterr().err
    assert "lean executor: made for rclpy 7.1.0" in written
    assert "has no SingleThreadedExecutor._something_new" in written
    BETS["lean executor"].told.clear()
