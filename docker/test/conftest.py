"""One engine and one build of each image for all tests of containers."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from kin_testing.container_engine import BASE, NoEngine, install_engine, make_base, open_engine

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def engine(request):
    """The engine that runs here; one of our own if these tests are asked for by name."""
    asked = "container" in (request.config.option.markexpr or "").split()
    ci = bool(os.environ.get("CI")) and asked
    folder = Path(tempfile.mkdtemp(prefix="kinstack-engine-", dir="/var/tmp"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            if ci and os.geteuid() == 0 and not shutil.which("dockerd"):
                install_engine()
            found = stack.enter_context(open_engine(folder / "engine", start=asked))
            before = set(found.run("image", "ls", "-q").stdout.split())
            if not found.has_image(BASE) and found.run("pull", BASE, check=False).returncode:
                make_base(found, folder)
        except NoEngine as error:
            (pytest.fail if ci else pytest.skip)(str(error))
        yield found
        if not found.own:
            after = set(found.run("image", "ls", "-q").stdout.split())
            for image in after - before:
                found.run("image", "rm", "-f", image, check=False)


@pytest.fixture(scope="session")
def image(engine):
    """The default image."""
    engine.build("kinstack-test:default", target="default")
    return "kinstack-test:default"


@pytest.fixture(scope="session")
def gpu_image(engine, image):
    """The image with CuPy."""
    engine.build("kinstack-test:gpu", target="gpu")
    return "kinstack-test:gpu"


@pytest.fixture(scope="session")
def native_image(engine, image):
    """The ROS image, on a stand-in that is laid out as ``ros:jazzy-ros-base`` is."""
    stages = {name.upper(): f"kinstack-test:{name}" for name in ("wheels", "workspace")}
    for name, tag in stages.items():
        engine.build(tag, target=name.lower())
    stand_in = HERE / "ros_stand_in"
    file = stand_in / "Dockerfile"
    engine.build("kinstack-test:ros", context=stand_in, file=file, arguments=stages)
    arguments = {"ROS_IMAGE": "kinstack-test:ros"}
    engine.build("kinstack-test:native", target="native", arguments=arguments)
    return "kinstack-test:native"


@pytest.fixture
def compose(engine, image, tmp_path):
    """Run the compose tool on our files, as a project that is taken down afterwards."""
    words = ["docker-compose"] if shutil.which("docker-compose") else [engine.docker, "compose"]
    project = f"kinstacktest{os.getpid()}"
    environment = {"KINSTACK_IMAGE": image, "ROS_DOMAIN_ID": "77", "DOCKER_BUILDKIT": "1"}
    used = []

    def run(files, *command, check=True, timeout=180.0, **variables):
        options = [word for name in files for word in ("-f", HERE.parent / name)]
        used.append((options, variables))
        return engine.execute(
            [*words, "-p", project, *options, *command],
            timeout=timeout,
            check=check,
            env={**environment, **variables},
        )

    yield run
    for options, variables in used[-1:]:
        profiles = [w for name in ("solvers", "control", "replay") for w in ("--profile", name)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            engine.execute(
                [*words, "-p", project, *options, *profiles, "down", "-v", "-t", "15"],
                timeout=120.0,
                check=False,
                env={**environment, **variables},
            )
