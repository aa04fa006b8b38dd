"""Every command that the documentation prints is run as it is printed.

The commands of a page are run in order, in a folder of their own that holds links to what the pages
name and the YAML files that the page shows (`questions.yaml` and the like). One stack without a
namespace runs meanwhile, as the pages assume; commands mostly wait for it, so several pages are run
at the same time. What is not run, and why, is said in `NOT_RUN`.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from domain_coordinator import domain_id

pytestmark = [pytest.mark.stack, pytest.mark.alone, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "examples" / "README.md",
    ROOT / "launch" / "README.md",
    *sorted(ROOT.glob("src/*/README.md")),
]
#: A line of a code block that is a command; in running text commands are only named.
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )?(?:\./kinstack|kin_solvers|docker|ros2|colcon|dask)\b")
#: Commands that are not run here, and why.
NOT_RUN = {
    r"^(\w+=\S+ )?\./kinstack (test|bench)\b": "is itself a run of tests, or of minutes",
    r"^(\w+=\S+ )?(docker|ros2|colcon)\b": "needs an engine or a ROS installation",
    r"^\./kinstack shell$": "opens a shell for a person",
    r"dask (worker|scheduler)\b": "is started by the tests of the engine",
    r"^\./kinstack bag golden make\b": "would change the golden bags",
}
#: Commands that go on until they are interrupted: so long [s] after they say this.
ENDLESS = {
    r"^\./kinstack up(?! --check)(?! --show-args)\b": ("active after", 0.2),
    r"^\./kinstack launch\b": (r"\]: active", 0.2),
    r"^\./kinstack run kin_dashboard dashboard\b": ("http://", 0.2),
    r"^\./kinstack bag record (?!.*--duration)": ("record", 4.0),
}


@dataclass(frozen=True)
class Printed:
    """A command and the page that prints it."""

    page: Path
    line: int
    text: str

    @property
    def why_not(self):
        return next((why for rule, why in NOT_RUN.items() if re.search(rule, self.text)), "")

    @property
    def stack_of_its_own(self):
        return bool(re.search(r"^\./kinstack (up|launch)\b", self.text))


def printed(page):
    """The commands in the code blocks of a page, continued lines joined, remarks cut off."""
    found, fenced, held = [], False, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
            continue
        if not (fenced or line.startswith("    ")):
            held = ""
            continue
        text = f"{held} {line.strip()}".strip()
        if text.endswith("\\"):
            held = text[:-1].strip()
            continue
        held = ""
        # A remark stands behind two blanks: after #, or as plain words in a table of commands.
        text = re.split(r"\s{2,}(?=#|[a-z]+ [a-z]+)", text)[0]
        if COMMAND.match(text):
            found.append(Printed(page, number, text))
    return found


ALL = [command for page in TEXTS for command in printed(page)]
#: Each once, where it is printed first.
RUN = list({c.text: c for c in reversed(ALL) if not c.why_not}.values())[::-1]
STARTS = [command for command in RUN if command.stack_of_its_own]
PAGES = [page for page in TEXTS if any(c.page == page and not c.stack_of_its_own for c in RUN)]


def files_of(page):
    """YAML blocks of a page by the file name that stands in the text before them."""
    text = page.read_text()
    for match in re.finditer(r"```yaml\n(.*?)```", text, flags=re.DOTALL):
        names = re.findall(r"`([\w.]+\.ya?ml)`", text[: match.start()].rsplit("```", 1)[-1])
        if names:
            yield names[-1], match[1]


def folder_like_the_clone(folder):
    """Make a folder like the clone, in which commands may leave files."""
    for name in ("kinstack", "examples", "launch", "benchmarks", "docker", "src", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def environment(**more):
    values = {**os.environ, "MPLBACKEND": "Agg", **more}
    for name in ("PYTHONPATH", "AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH"):
        values.pop(name, None)
    return values


def run(command, folder, values):
    """Run a command in a shell as a person would; the code, and all that it printed."""
    log = folder / "output.txt"
    endless = (rule for rule in ENDLESS if re.search(rule, command.text))
    awaited, seconds = ENDLESS.get(next(endless, ""), ("", 0.0))
    with log.open("w") as out:
        process = psutil.Popen(
            ["bash", "-c", f"exec {command.text}"] if awaited else ["bash", "-c", command.text],
            cwd=folder,
            env=values,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 300.0
        while awaited and not re.search(awaited, log.read_text()) and process.poll() is None:
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        time.sleep(seconds)
        late = time.monotonic() > deadline
        if awaited:
            process.send_signal(signal.SIGINT)
        code = process.wait(timeout=300)
    assert not late, f"not within five minutes: {awaited}\n{log.read_text()}"
    return code, log.read_text()


def test_commands_are_found():
    assert len(RUN) > 30
    assert len(STARTS) >= 5
    for rule in NOT_RUN:
        assert any(re.search(rule, command.text) for command in ALL), f"nothing printed fits {rule}"


#: Only one at a time may break processors, or move the arm that others have broken.
CONTROLLER = threading.Lock()


def run_page(page, folder, values):
    """Run the commands of a page in order; what went wrong, or nothing."""
    folder_like_the_clone(folder)
    for name, text in files_of(page):
        (folder / name).write_text(text)
    commands = [c for c in RUN if c.page == page and not c.stack_of_its_own]
    alone = any(re.search("controller", c.text) for c in commands)
    with CONTROLLER if alone else contextlib.nullcontext():
        for command in commands:
            code, out = run(command, folder, values)
            if code != 0 or "Traceback" in out:
                return f"{page.name}:{command.line}: {command.text} gave {code}\n{out}"
    return ""


def run_start(command, folder):
    """Run a command that starts a stack, in a domain of its own."""
    folder_like_the_clone(folder)
    with domain_id() as number:
        code, out = run(command, folder, environment(ROS_DOMAIN_ID=str(number)))
    return f"gave {code}\n{out}" if code != 0 or "Traceback" in out else ""


def at_once(request, count, action, *arguments):
    """Begin ``action`` for each parameter of the tests that use this fixture; futures of it."""
    tests = [item for item in request.session.items if request.fixturename in item.fixturenames]
    wanted = [next(iter(item.callspec.params.values())) for item in tests]
    wanted.sort(key=lambda one: -sum(c.page == one for c in RUN))  # the longest page first
    make_folder = request.getfixturevalue("tmp_path_factory").mktemp
    with ThreadPoolExecutor(count) as pool:
        yield {one: pool.submit(action, one, make_folder("at_once"), *arguments) for one in wanted}


@pytest.fixture(scope="module")
def pages(request, full_stack):
    domain = full_stack.client.node.context.get_domain_id()
    yield from at_once(request, 4, run_page, environment(ROS_DOMAIN_ID=str(domain)))


@pytest.fixture(scope="module")
def starts(request):
    yield from at_once(request, 2, run_start)


@pytest.mark.parametrize("command", STARTS, ids=lambda command: command.text[11:])
def test_starts(command, starts):
    wrong = starts[command].result()
    assert not wrong, wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page(page, pages):
    wrong = pages[page].result()
    assert not wrong, wrong
