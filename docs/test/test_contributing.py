"""The steps of CONTRIBUTING.md that add a system are executed in a copy of the workspace."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from domain_coordinator import domain_id

ROOT = Path(__file__).resolve().parents[2]
#: What the new system needs; the other systems would only take longer to copy.
PACKAGES = ("kin_core", "kin_interfaces", "kin_monitor", "kin_ros", "kin_tools")


def copy_of_the_workspace(root):
    """The command, the packages that are needed, and what is built of them."""
    leave_out = shutil.ignore_patterns("*.egg-info", "__pycache__", "build")
    for name in ("kinstack", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, root / name)
    shutil.copytree(ROOT / "launch", root / "launch", ignore=leave_out)
    for name in PACKAGES:
        shutil.copytree(ROOT / "src" / name, root / "src" / name, ignore=leave_out)
    (root / ".venv").symlink_to(Path(sys.prefix).resolve())
    # The interfaces do not change, and would take a minute to build again.
    install = Path(os.environ["AMENT_PREFIX_PATH"].split(":")[0]).parent
    stamps = root / "install" / ".kinstack"
    stamps.mkdir(parents=True)
    (stamps / ".clone").write_text(str(root))
    shutil.copytree(install / "kin_interfaces", root / "install/kin_interfaces", symlinks=True)
    shutil.copy(install / ".kinstack" / "kin_interfaces", stamps)
    return root


def test_the_page_is_short_and_its_links_lead_somewhere():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(page.splitlines()) < 160
    for link in re.findall(r"\]\(([^)\s]+)\)", page):
        assert (ROOT / link).exists(), link


@pytest.mark.slow
@pytest.mark.stack
@pytest.mark.timeout(600)
def test_a_system_added_step_by_step_builds_starts_answers_and_is_monitored(tmp_path):
    (steps,) = re.findall(r"```bash\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    root = copy_of_the_workspace(tmp_path)
    environment = dict(os.environ)
    for name in ("PYTHONPATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH"):
        environment.pop(name, None)
    with domain_id() as domain:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", steps],
            cwd=root,
            env={**environment, "ROS_DOMAIN_ID": str(domain)},
            capture_output=True,
            text=True,
            check=False,
            timeout=540,
        )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "building kin_core, kin_monitor, kin_ros, kin_tools, pendulum, kin_bringup [" in told
    answered = r"^/pendulum +period +SUCCESS .*the period is 1\.003 s"
    monitored = r"^/stack_monitor +check_ready +SUCCESS .*1 of 1 nodes ready"
    assert re.search(answered, told, re.MULTILINE), told
    assert re.search(monitored, told, re.MULTILINE), told
