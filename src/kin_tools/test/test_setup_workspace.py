"""Set-up of a clone: stamps, repair after an interruption, two at once, what is missing.

A small clone is made in a temporary folder: real venv, real installer, a lock file with one wheel
that the test builds itself, so that no index is needed.
"""

import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from kin_tools import setup_workspace
from kin_tools.setup_workspace import (
    SetupError,
    Workspace,
    explain_pip,
    package_name,
    source_digest,
    uv_settings,
    without_ros,
)

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(setup_workspace.__file__)


def make_wheel(folder, name="tinypkg", version="1.0"):
    """Build a wheel by hand: one module, and the three files that make it a wheel."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(text)}")
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A clone with one wheel in its lock and no packages to build."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    root = tmp_path / "clone"
    (root / "src").mkdir(parents=True)
    (root / "requirements.lock").write_text(make_wheel(wheels))
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("KINSTACK_INSTALLER", "pip")
    return root


@pytest.fixture(scope="session")
def empty_environment(tmp_path_factory):
    path = tmp_path_factory.mktemp("environment") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    return path


@pytest.fixture
def begun(clone, empty_environment):
    """A clone whose environment is made, which takes seconds, and empty."""
    shutil.copytree(empty_environment, clone / ".venv", symlinks=True)
    return clone


def installed(root):
    ran = subprocess.run(
        [root / ".venv/bin/python", "-c", "import tinypkg; print(tinypkg.VERSION)"],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip()


def prepare(root, **options):
    Workspace(root, native=False, dev=options.pop("dev", False), **options).prepare()


def installs(capsys):
    """How often packages were installed since this was last asked."""
    return capsys.readouterr().err.count("installing ")


def test_first_second_and_changed(clone, tmp_path, capsys):
    prepare(clone)
    assert installed(clone) == "1.0"
    assert installs(capsys) == 1
    # Nothing changed: nothing is done, and no network is needed.
    prepare(clone)
    assert installs(capsys) == 0
    (clone / "requirements.lock").write_text(make_wheel(tmp_path / "wheels", version="2.0"))
    prepare(clone)
    assert installed(clone) == "2.0"
    assert installs(capsys) == 1


def test_an_interrupted_set_up_is_repaired(begun):
    """Ctrl-C while pip waits for an index that does not answer, then a Python that is gone."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        process = subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT), str(begun)],
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PIP_NO_INDEX": "",
                "PIP_FIND_LINKS": "",
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_INDEX_URL": f"http://127.0.0.1:{index.getsockname()[1]}/simple",
            },
        )
        asking, _ = index.accept()
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        asking.close()
    assert process.returncode == 130
    assert said.endswith("interrupted; the next run goes on where this one stopped\n")
    assert installed(begun) == ""
    (begun / ".venv/bin/python").unlink()  # as after a full disk
    prepare(begun)
    assert installed(begun) == "1.0"


def test_two_locks_at_once(begun, tmp_path, capsys):
    """What both name is installed once; of what cannot be installed the name is told."""
    names = ["tinypkg", "other", "third", "fourth"]
    lines = {name: make_wheel(tmp_path / "wheels", name) for name in names}
    (begun / "requirements.lock").write_text("".join(lines[name] for name in names[:3]))
    (begun / "requirements-dev.lock").write_text("".join(lines[name] for name in names[1:]))
    prepare(begun, dev=True)
    assert "installing 4 packages" in capsys.readouterr().err
    for name in names:
        assert (next((begun / ".venv/lib").glob("python3.*")) / f"site-packages/{name}.py").exists()
    wrong = lines["fourth"].replace("1.0", "3")
    (begun / "requirements-dev.lock").write_text(lines["other"] + wrong)
    with pytest.raises(SetupError, match="fourth==3"):
        prepare(begun, dev=True)
    assert "installing 2 packages" in capsys.readouterr().err


# uv instead of pip -------------------------------------------------------------------------------


@pytest.fixture
def uv(begun, monkeypatch):
    """The clone with the uv that this workspace was set up with."""
    kept = Path(os.environ.get("NUMBA_CACHE_DIR", ROOT / ".cache/numba")).parent / "uv"
    if not (kept / "bin" / "uv").exists():
        pytest.skip("this workspace was set up by pip")
    monkeypatch.delenv("KINSTACK_INSTALLER")
    (begun / ".cache").mkdir()
    (begun / ".cache" / "uv").symlink_to(kept)
    return begun


def test_uv_installs_what_pip_would(uv, capsys):
    prepare(uv)
    assert installed(uv) == "1.0"
    assert "tinypkg" in (uv / ".cache/uv.log").read_text()
    assert not (uv / ".venv/bin/uv").exists()


def test_where_uv_fails_pip_says_why(uv):
    (uv / "requirements.lock").write_text("tinypkg==1.0 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(SetupError, match="differs from the one that was locked"):
        prepare(uv)
    assert "tinypkg" in (uv / ".cache/uv.log").read_text()


def test_a_setting_that_uv_has_no_word_for_leaves_it_to_pip(uv, monkeypatch):
    monkeypatch.setenv("PIP_ONLY_BINARY", ":all:")
    prepare(uv)
    assert installed(uv) == "1.0"
    assert not (uv / ".cache/uv.log").exists()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", {}),
        ("global.index-url='https://a/simple'", {"UV_DEFAULT_INDEX": "https://a/simple"}),
        ("global.extra-index-url='file:///a\\nfile:///b'", {"UV_INDEX": "file:///a file:///b"}),
        ("global.find-links='/a'\n:env:.find-links='/b /c'", {"UV_FIND_LINKS": "/b,/c"}),
        (":env:.cert='/c.pem'\nglobal.cert='/d.pem'", {"SSL_CERT_FILE": "/c.pem"}),
        ("install.timeout='9'\nglobal.timeout='8'", {"UV_HTTP_TIMEOUT": "9"}),
        (":env:.no-index='1'\nglobal.quiet='2'", {"UV_NO_INDEX": "1"}),
        (":env:.no-index='0'\n:env:.index-url=''", {}),
        ("list.format='columns'\nWARNING: something", {}),
        ("install.only-binary=':all:'", None),
        ("global.use-feature='fast-deps'", None),
        ("global.index-url=unquoted", None),
    ],
)
def test_settings_of_pip_in_the_words_of_uv(said, expected):
    settings = uv_settings(said)
    always = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_NO_CONFIG": "1"}
    assert settings == (None if expected is None else {**always, **expected})


def test_two_set_ups_at_once(begun):
    command = [sys.executable, "-I", str(SCRIPT), str(begun)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], errors
    assert sum("installing 1 packages" in text for text in errors) == 1
    assert sum("another set-up" in text for text in errors) == 1
    assert installed(begun) == "1.0"


def run_main(clone, **environment):
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), str(clone)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
        timeout=120,
    )


def one_sentence(ran):
    lines = [line for line in ran.stderr.splitlines() if line.startswith("kinstack:")]
    return lines[-1]


def test_no_such_package_and_wrong_hash(begun):
    (begun / "requirements.lock").write_text("tinypkg==9.9 --hash=sha256:" + "0" * 64 + "\n")
    ran = run_main(begun)
    assert ran.returncode == 1
    assert "No matching distribution" in one_sentence(ran)
    (begun / "requirements.lock").write_text("tinypkg==1.0 --hash=sha256:" + "0" * 64 + "\n")
    ran = run_main(begun)
    assert ran.returncode == 1
    assert "differs from the one that was locked" in one_sentence(ran)


def test_no_network(begun):
    # An index on a port where nobody listens: refused at once, as without a network.
    ran = run_main(
        begun,
        PIP_NO_INDEX="",
        PIP_FIND_LINKS="",
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_CONFIG_FILE=os.devnull,
        PIP_RETRIES="0",
    )
    assert ran.returncode == 1
    assert "cannot be reached" in one_sentence(ran)


def test_no_space(clone, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10_000_000))
    with pytest.raises(SetupError, match=r"only 0\.0 GB are free"):
        prepare(clone)


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        (("c++", "g++", "clang++"), r"no C\+\+ compiler was found: .* apt install g\+\+\)"),
        (("make", "gmake"), r"no make was found: .* apt install make\)"),
        (("c++", "g++", "clang++", "make", "gmake"), r"compiler and no make .* g\+\+ make\)"),
    ],
)
def test_tools_are_missed_before_anything_is_downloaded(clone, monkeypatch, missing, sentence):
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name in missing else which(name))
    with pytest.raises(SetupError, match=sentence):
        prepare(clone)
    assert not (clone / ".venv").exists()


def test_headers_are_missed_before_anything_is_downloaded(clone, monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(SetupError, match=r"headers are missing.*python3-dev"):
        prepare(clone)
    assert not (clone / ".venv").exists()


def test_a_failed_install_is_not_called_installed(begun):
    (begun / "requirements.lock").write_text("tinypkg==9.9 --hash=sha256:" + "0" * 64 + "\n")
    ran = run_main(begun)
    assert ran.returncode == 1
    assert "installing 1 packages\n" in ran.stderr  # no time behind it


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))\n"
         "Max retries exceeded", "certificate was not accepted"),
        ("NewConnectionError: Failed to establish a new connection", "cannot be reached"),
    ],
)  # fmt: skip
def test_tls_and_no_network_are_told_apart(log, sentence, tmp_path):
    assert sentence in explain_pip(log, tmp_path / "pip.log")


def test_a_moved_environment_works_where_it_is(begun, tmp_path, capsys):
    clone = begun
    prepare(clone)
    for place in ("renamed", "renamed_again"):
        moved = tmp_path / place
        clone.rename(moved)
        clone = moved
        prepare(clone)
        assert installed(clone) == "1.0"
        pip = subprocess.run([clone / ".venv/bin/pip", "--version"], capture_output=True, text=True)
        assert str(clone) in pip.stdout, pip.stderr
    assert installs(capsys) == 1  # nothing was installed again
    left = subprocess.run(
        ["grep", "-rlI", str(tmp_path / "clone"), clone / ".venv" / "bin"],
        capture_output=True,
        text=True,
    )
    assert not left.stdout


def test_an_environment_made_before_moves_were_noticed(begun, tmp_path):
    prepare(begun)
    (begun / ".venv" / ".clone").unlink()
    moved = begun.rename(tmp_path / "elsewhere")
    prepare(moved)
    pip = subprocess.run([moved / ".venv/bin/pip", "--version"], capture_output=True, text=True)
    assert str(moved) in pip.stdout, pip.stderr


def test_wrong_python(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "version_info", (3, 9, 0))
    assert setup_workspace.main([str(tmp_path)]) == 1
    assert "Python 3.11 to 3.13 is needed, this is 3.9" in capsys.readouterr().err


def test_native_mode_leaves_ros_out():
    text = (ROOT / "requirements.lock").read_text()
    kept = without_ros(text)
    names = [
        line.split("==")[0] for line in kept.splitlines() if "==" in line and line[0].isalpha()
    ]
    assert "numpy" in names
    assert "numba" in names
    assert not [name for name in names if name.startswith(("ros-", "colcon"))]
    # Every hash still belongs to a package that is kept.
    assert kept.count("--hash=") < text.count("--hash=")
    assert not kept.lstrip().startswith("--hash")


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [("", "no ROS 2 is sourced"), ("/opt/ros/other", "does not work with")],
)
def test_native_mode_needs_a_ros_that_loads(clone, prefix, reason):
    """With a Python that has no rclpy, as when another than ROS's own comes first in the path."""
    environment = {**os.environ, "ROS_DISTRO": "jazzy", "AMENT_PREFIX_PATH": prefix}
    environment.pop("PYTHONPATH", None)
    ran = subprocess.run(
        [sys._base_executable, "-I", str(SCRIPT), str(clone), "--native"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 1
    assert reason in one_sentence(ran)
    assert "KINSTACK_WHEELS=1" in one_sentence(ran)
    assert not (clone / ".venv-native").exists()


def test_native_mode_names_the_messages_that_a_small_ros_lacks(clone, tmp_path):
    (tmp_path / "ros").mkdir()
    for name in ("rclpy", "tf2_msgs"):
        (tmp_path / "ros" / f"{name}.py").write_text("")
    ran = subprocess.run(
        [sys._base_executable, "-I", str(SCRIPT), str(clone), "--native"],
        capture_output=True,
        text=True,
        env={**os.environ, "ROS_DISTRO": "jazzy", "PYTHONPATH": str(tmp_path / "ros")},
        check=False,
        timeout=60,
    )
    assert ran.returncode == 1
    assert one_sentence(ran).endswith("apt install ros-jazzy-control-msgs ros-jazzy-moveit-msgs")
    assert not (clone / ".venv-native").exists()


def test_locks_name_no_host_and_no_path():
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        assert "--index-url" not in text
        assert "--find-links" not in text
        for line in text.splitlines():
            assert not line.startswith(("/", "-e", "file"))


def test_the_locks_are_complete():
    """Set-up installs just what the locks name, so no requirement of theirs may be missing."""
    checked = subprocess.run(
        [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_digest_of_a_python_package(tmp_path):
    package = tmp_path / "pkg"
    (package / "pkg").mkdir(parents=True)
    (package / "setup.py").write_text("1")
    (package / "pkg" / "a.py").write_text("1")
    (package / "pkg" / "data.yaml").write_text("1")
    before = source_digest(package)
    (package / "pkg" / "a.py").write_text("2")
    (package / "pkg" / "__pycache__").mkdir()
    (package / "pkg" / "__pycache__" / "a.pyc").write_text("x")
    assert source_digest(package) == before
    (package / "pkg" / "data.yaml").write_text("2")
    changed = source_digest(package)
    assert changed != before
    (package / "setup.py").write_text("2")
    assert source_digest(package) != changed


def test_package_names(tmp_path):
    assert package_name(ROOT / "src" / "kin_core") == "kin_core"
    (tmp_path / "package.xml").write_text("<package/>")
    with pytest.raises(SetupError, match="no valid <name>"):
        package_name(tmp_path)


def test_standard_interfaces_are_built_beside_the_wheels_alone():
    """A ROS installation has the real packages, which ours would hide."""

    def built(native):
        folders = Workspace(ROOT, native=native, dev=False).packages()
        return {package_name(folder) for folder in folders}

    assert built(False) - built(True) == {
        "control_msgs",
        "moveit_msgs",
        "object_recognition_msgs",
        "tf2_msgs",
    }
    assert "kin_interfaces" in built(True)


# With the real colcon ----------------------------------------------------------------------------


def make_workspace(root, keep=None, packages=("kin_core", "kin_tools")):
    """A clone of the command, some real packages, and the environment of this one."""
    (root / "src").mkdir(parents=True)
    for name in ("kinstack", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, root / name)
    for name in packages:
        ignore = shutil.ignore_patterns("*.egg-info", "__pycache__")
        shutil.copytree(ROOT / "src" / name, root / "src" / name, ignore=ignore)
    keep = keep or root
    keep.mkdir(parents=True, exist_ok=True)
    (keep / ".venv").symlink_to(Path(sys.prefix).resolve())
    return root


@pytest.fixture
def workspace(tmp_path):
    return make_workspace(tmp_path / "ws")


def kinstack(root, *arguments, **options):
    environment = {**os.environ, **options.pop("environment", {})}
    for name in ("PYTHONPATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH"):
        environment.pop(name, None)
    return subprocess.run(
        [root / "kinstack", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=280,
        **options,
    )


@pytest.mark.slow
def test_only_what_changed_is_built(workspace):
    ran = kinstack(workspace, "setup")
    assert ran.returncode == 0, ran.stderr
    assert "building kin_core, kin_tools" in ran.stderr
    ran = kinstack(workspace, "setup")
    assert ran.returncode == 0
    assert "building" not in ran.stderr
    with open(workspace / "src/kin_core/package.xml", "a") as file:
        file.write("<!-- changed -->\n")
    ran = kinstack(workspace, "setup")
    assert "building kin_core [" in ran.stderr
    # What was removed by hand comes back.
    shutil.rmtree(workspace / "install" / "kin_tools")
    ran = kinstack(workspace, "setup")
    assert "building kin_tools [" in ran.stderr
    ran = kinstack(
        workspace, "shell", "python", "-c", "import kin_tools; print(kin_tools.__file__)"
    )
    assert str(workspace) in ran.stdout, ran.stderr


TINY = {
    "package.xml": """<package format="3"><name>tiny_interfaces</name><version>0.1.0</version>
      <description>one message</description><maintainer email="a@b.cd">a</maintainer>
      <license>Apache-2.0</license><buildtool_depend>ament_cmake</buildtool_depend>
      <buildtool_depend>rosidl_default_generators</buildtool_depend>
      <member_of_group>rosidl_interface_packages</member_of_group>
      <export><build_type>ament_cmake</build_type></export></package>""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.16)
      project(tiny_interfaces)
      find_package(ament_cmake REQUIRED)
      find_package(rosidl_default_generators REQUIRED)
      rosidl_generate_interfaces(${PROJECT_NAME} "msg/Tiny.msg")
      ament_package()""",
    "msg/Tiny.msg": "float64 x\n",
}
#: A folder that CMake, make, sh and the search paths each have something against.
ODD = "my robots (v2) & co's #1: 5% of $HOME; é"


@pytest.mark.slow
def test_a_path_with_odd_characters(tmp_path):
    """Set-up with a real interface package, a program, and a move to another odd place."""
    cache = tmp_path / "cache"
    environment = {"XDG_CACHE_HOME": str(cache), "KINSTACK_WHEELS": "1"}

    def keep_of(root):
        return cache / "kinstack" / hashlib.sha256(str(root).encode()).hexdigest()[:12]

    root = tmp_path / ODD / "kinstack"
    make_workspace(root, keep_of(root), ("kin_core", "kin_monitor", "kin_tools"))
    for name, text in TINY.items():
        path = root / "src" / "tiny_interfaces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = "import kin_tools, tiny_interfaces.msg as m; print(m.Tiny(x=2.0), kin_tools.__file__)"
    ran = kinstack(root, "shell", "python", "-c", code, environment=environment)
    assert ran.returncode == 0, ran.stderr
    assert "Tiny(x=2.0)" in ran.stdout
    assert not [name for name in os.listdir(root) if name in ("build", "install", ".venv")]
    ran = kinstack(root, "run", "kin_monitor", "stack_monitor", "--help", environment=environment)
    assert "No such file" not in ran.stderr, ran.stderr
    # Moved: built again, and nothing is kept for the old place.
    moved = root.rename(tmp_path / "another's place")
    old, new = keep_of(root), keep_of(moved)
    new.mkdir()
    (new / ".venv").symlink_to(Path(sys.prefix).resolve())
    shutil.rmtree(moved / "src" / "tiny_interfaces")
    ran = kinstack(moved, "setup", environment=environment)
    assert ran.returncode == 0, ran.stderr
    assert "is gone" in ran.stderr
    assert not old.exists()
    ran = kinstack(
        moved, "shell", "python", "-c", "import kin_tools as k; print(k.__file__)",
        environment=environment,
    )  # fmt: skip
    assert str(new) in ran.stdout, ran.stderr


@pytest.mark.slow
def test_a_moved_clone_is_built_again(workspace, tmp_path):
    assert kinstack(workspace, "setup").returncode == 0
    moved = workspace.rename(tmp_path / "renamed")
    code = "import kin_tools; print(kin_tools.__file__)"
    ran = kinstack(moved, "shell", "python", "-c", code)
    assert ran.returncode == 0, ran.stderr
    assert f"this clone was in {workspace}" in ran.stderr
    assert ran.stdout.startswith(str(moved))
    ran = kinstack(moved, "setup")
    assert "building" not in ran.stderr


@pytest.mark.slow
def test_a_build_cut_short_is_done_again(workspace):
    process = subprocess.Popen(
        [workspace / "kinstack", "setup"],
        stderr=subprocess.DEVNULL,
        env={k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "AMENT_PREFIX_PATH")},
        start_new_session=True,
    )
    while not (workspace / "build" / "kin_core").exists():
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    assert process.returncode != 0
    assert not (workspace / "install/.kinstack/kin_tools").exists()
    ran = kinstack(workspace, "setup")
    assert ran.returncode == 0, ran.stderr
    assert (workspace / "install/.kinstack/kin_tools").exists()


def test_a_broken_package_is_named(workspace):
    (workspace / "src/kin_tools/setup.py").write_text("raise SystemExit('no good')\n")
    ran = kinstack(workspace, "setup")
    assert ran.returncode == 1
    assert "the build of" in ran.stderr
    assert 'Traceback (most recent call last):\n  File "' + str(SCRIPT) not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nonsense"], 2, "'nonsense' is not a command"),
        (["call"], 2, "call needs SERVICE TYPE"),
        (["bench"], 2, "bench needs a name"),
        (["run", "x"], 2, "run needs PACKAGE EXECUTABLE"),
        (["launch"], 2, "launch needs a file"),
    ],
)
def test_bad_words(arguments, code, sentence):
    ran = kinstack(ROOT, *arguments)
    assert ran.returncode == code
    assert sentence in ran.stderr


@pytest.mark.parametrize("command", ["up", "call", "bag", "launch", "bench", "setup", "lint"])
def test_help_of_a_command_sets_nothing_up(command, tmp_path):
    """In a clone where nothing is installed, with a Python that has no packages."""
    root = tmp_path / "fresh"
    (root / "src").mkdir(parents=True)
    shutil.copy(ROOT / "kinstack", root)
    for name in ("src/kin_tools", "src/kin_bags", "benchmarks"):
        shutil.copytree(ROOT / name, root / name)
    before = sorted(path.name for path in root.iterdir())
    ran = kinstack(root, command, "--help", environment={"KINSTACK_PYTHON": sys._base_executable})
    assert ran.returncode == 0, ran.stderr
    assert command in ran.stdout
    assert sorted(path.name for path in root.iterdir()) == before


def test_help():
    ran = kinstack(ROOT, "--help")
    assert ran.returncode == 0
    for word in ("up", "test", "bench", "call", "bag", "shell"):
        assert f"./kinstack {word}" in ran.stdout
    assert kinstack(ROOT).returncode == 2


def test_a_named_python_that_is_too_old(tmp_path):
    old = tmp_path / "python3.8"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.18 && exit 0\nexit 1\n')
    old.chmod(0o755)
    ran = kinstack(ROOT, "setup", environment={"KINSTACK_PYTHON": str(old)})
    assert ran.returncode == 1
    assert "Python 3.11 to 3.13 is needed" in ran.stderr
    assert "is Python 3.8.18" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_named_python_that_is_not_there():
    ran = kinstack(ROOT, "setup", environment={"KINSTACK_PYTHON": "python-that-is-not-there"})
    assert ran.returncode == 1
    assert "KINSTACK_PYTHON=python-that-is-not-there was not found" in ran.stderr
