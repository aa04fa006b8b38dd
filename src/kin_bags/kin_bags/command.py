"""``python -m kin_bags.command``: record, look at, replay and compare rosbag2 bags."""

from __future__ import annotations

import kin_core.interrupts  # isort: skip  # noqa: F401 (before all else)
import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kin_bags.options import bag_parser
from kin_bags.questions import is_answer
from kin_bags.reader import Bag, Selection, open_bag
from kin_bags.writer import BagWriter
from kin_core.errors import InvalidInput, KinError
from kin_core.yamls import LIMIT_BYTES, load_yaml

__all__ = ["main"]


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # a reader that is gone is no reason to lose a bag
        print(f"bag: {text}", file=sys.stderr, flush=True)


class _Stop:
    """Set by Ctrl-C or SIGTERM inside its block; the handlers are as before after it."""

    def __init__(self) -> None:
        self.wanted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Stop:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, *_: object) -> None:
        self.wanted = True

    def __call__(self) -> bool:
        return self.wanted


def _selection(options: argparse.Namespace) -> Selection:
    return Selection(
        topics=None if options.topics is None else frozenset(options.topics),
        exclude=frozenset(options.exclude),
        remaps=tuple(options.remap),
        start=options.start,
        end=options.end,
    )


def _record(options: argparse.Namespace) -> int:
    from kin_bags.record import Recorder
    from kin_ros.client import open_client

    path: Path = options.output or Path(time.strftime("bag_%Y_%m_%d-%H_%M_%S"))
    writer = BagWriter(
        path,
        storage=options.storage,
        compress=options.compress,
        split_size=int(options.split_size * 1e6),
        split_duration=options.split_duration,
    )
    with _Stop() as stop, writer, open_client("record") as client:
        recorder = Recorder(
            client.node,
            writer,
            options.topics or None,
            exclude=options.exclude,
            hidden=options.hidden,
            say=_say,
        )
        _say(f"writing {path}; Ctrl-C ends it")
        begin = time.monotonic()
        while not stop():
            recorder.poll()
            client.spin_until(stop, 0.2)
            if options.duration is not None and time.monotonic() - begin >= options.duration:
                break
        seen, end = -1, time.monotonic() + 1.0
        while seen != writer.count and time.monotonic() < end:  # what has arrived is kept too
            seen = writer.count
            client.spin_until(lambda: False, 0.05)
    _say(f"{writer.count} messages of {len(recorder.counts)} topics in {path}")
    return 0


def _info(options: argparse.Namespace) -> int:
    with open_bag(options.bag, _say) as bag:
        begin = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(bag.begin / 1e9))
        files = [options.bag]
        if options.bag.is_dir():
            files = sorted(
                p for p in options.bag.iterdir() if p.suffix in (".mcap", ".db3", ".zstd")
            )
        print(f"bag:       {options.bag}")
        print(f"files:     {', '.join(file.name for file in files)}")
        print(f"size:      {sum(file.stat().st_size for file in files)} bytes")
        print(f"begin:     {begin} UTC" if bag.count else "begin:     -")
        print(f"duration:  {bag.duration:.3f} s")
        print(f"messages:  {bag.count}")
        if bag.compression:
            print(f"packed:    {bag.compression}")
        print("topics:")
        for connection in sorted(bag.connections, key=lambda c: c.topic):
            qos = ", ".join(
                f"{q.reliability.name.lower()} {q.durability.name.lower()} depth {q.depth}"
                for q in connection.ext.offered_qos_profiles
            )
            print(
                f"  {connection.topic}: {connection.msgcount} x {connection.msgtype}"
                + (f" ({qos})" if qos else "")
            )
    return 0


def _replay(options: argparse.Namespace) -> int:
    from kin_bags.replay import play
    from kin_ros.client import open_client

    if options.core or options.lock_step:
        return _replay_in_step(options)
    if options.output is not None:
        raise InvalidInput("--output", "needs --lock-step or --core")
    with (
        _Stop() as stop,
        open_bag(options.bag, _say) as bag,
        open_client("replay") as client,
    ):
        played, problems = play(
            client,
            bag,
            _selection(options),
            rate=options.rate,
            clock=options.clock,
            wait=options.wait,
            stop=stop,
        )
    for problem in problems:
        _say(problem)
    _say(f"{played} messages were played" + (", interrupted" if stop() else ""))
    return 130 if stop() else int(bool(problems))


def _replay_in_step(options: argparse.Namespace) -> int:
    from kin_bags.replay import drive, published_topics

    selection = _selection(options)
    with open_bag(options.bag, _say) as bag:
        topics = {
            selection.name(c.topic): c.msgtype
            for c in bag.connections
            if selection.wants(c.topic) and not is_answer(c.topic)
        }
        outputs = {} if options.core else published_topics(topics, options.patience)
        with _target(options, bag, outputs, selection) as target:
            answers = target.published(topics) if options.core else outputs
            outcome = drive(bag, target, answers, selection)
    if options.output is not None:
        with BagWriter(options.output) as writer:
            for record in outcome.got:
                channel = writer.channel(record.topic, record.type, ())
                writer.write(channel, record.stamp, record.raw)
    for problem in outcome.problems:
        _say(problem)
    _say(f"{outcome.sent} messages and requests were sent, {len(outcome.got)} came back")
    return int(bool(outcome.problems))


@contextlib.contextmanager
def _target(
    options: argparse.Namespace,
    bag: Bag | None,
    outputs: dict[str, str],
    selection: Selection | None = None,
) -> Iterator[Any]:
    """Running nodes, or nodes of this process."""
    if options.core:
        from kin_bags.core import CoreTarget, find_node_class

        classes = [find_node_class(name) for name in options.core]
        core = CoreTarget(classes, namespace=options.namespace, parameter_file=options.params)
        with contextlib.closing(core):
            yield core
        return
    from kin_bags.replay import NodeTarget
    from kin_ros.client import open_client

    with open_client("regress") as client:
        yield NodeTarget(
            client,
            bag,
            outputs,
            clock=getattr(options, "clock", False),
            patience=options.patience,
            selection=selection,
        )


def _regress(options: argparse.Namespace) -> int:
    from kin_bags import report
    from kin_bags.compare import Tolerances
    from kin_bags.regress import accept, outputs_of, regress

    tolerances = Tolerances.read(options.tolerances)
    selection = _selection(options)
    with open_bag(options.bag, _say) as bag:
        outputs = outputs_of(bag, tolerances, selection)
        with _target(options, bag, outputs, selection) as target:
            result = regress(bag, target, tolerances, selection)
    print(f"{options.bag}: {result.outcome.sent} messages and requests replayed")
    print(report.text(result.verdict, result.outcome.problems))
    if options.plot is not None and report.plot(result.verdict, options.plot):
        print(f"plot: {options.plot}")
    if options.accept:
        accept(options.bag, result.outcome)
        print(f"accepted: {options.bag} now holds what came")
        return 0
    return 0 if result.good else 1


def _ask(options: argparse.Namespace) -> int:
    from kin_bags.ask import outputs_of_messages, read_exchanges, record_exchanges

    exchanges = read_exchanges(
        load_yaml(options.questions, longest_word=LIMIT_BYTES), str(options.questions)
    )
    outputs = outputs_of_messages(exchanges)
    with (
        BagWriter(options.bag, storage=options.storage) as writer,
        _target(options, None, outputs) as target,
    ):
        count = record_exchanges(writer, target, exchanges, outputs)
    _say(f"{count} requests and messages with their answers in {options.bag}")
    return 0


def _golden(options: argparse.Namespace) -> int:
    from kin_bags.golden import check_golden, make_golden, read_goldens
    from kin_bags.report import text

    goldens = read_goldens()
    for name in options.systems:
        if name not in goldens:
            known = ", ".join(goldens)
            raise InvalidInput(name, f"has no golden bag (there are {known or 'none'})")
    good = True
    for name in options.systems or list(goldens):
        if options.what == "make":
            make_golden(goldens[name])
            continue
        result = check_golden(goldens[name])
        good = good and result.good
        print(f"{name}: {result.outcome.sent} requests replayed")
        print(text(result.verdict, result.outcome.problems))
    return 0 if good else 1


def _repair(options: argparse.Namespace) -> int:
    from kin_bags.repair import is_damaged, repair_bag

    if not options.bag.is_dir():
        raise InvalidInput(str(options.bag), "there is no such bag")
    if not is_damaged(options.bag) and (options.bag / "metadata.yaml").exists():
        _say(f"{options.bag} is whole")
        return 0
    _say(f"{options.bag} is repaired; {repair_bag(options.bag)} bytes were cut off")
    return 0


_COMMANDS = {
    "record": _record,
    "info": _info,
    "replay": _replay,
    "regress": _regress,
    "ask": _ask,
    "repair": _repair,
    "golden": _golden,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = bag_parser().parse_args(argv)
    try:
        return _COMMANDS[options.command](options)
    except InvalidInput as error:
        _say(str(error))
        return 2
    except KinError as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
