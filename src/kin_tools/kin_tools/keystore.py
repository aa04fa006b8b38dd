"""``python -m kin_tools.keystore``: keys and signed permissions for DDS security, from a policy.

The folder is laid out as ``ros2 security`` lays it out, so that ROS_SECURITY_KEYSTORE can name it:
one authority, which signs the identity of each enclave and what the enclave may do. Keys are made
by ``openssl``; no ROS is needed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from kin_core.errors import InvalidInput
from kin_tools.errors import ToolError
from kin_tools.policy import Rights, moved, read_policy

__all__ = ["KeystoreError", "main", "make_keystore", "topics_of"]

_DAYS = 3650
_SCHEMA = "http://www.omg.org/spec/DDS-SECURITY/20170901/omg_shared_ca_{}.xsd"

#: Nobody without a certificate joins, everything is encrypted, each topic needs a right.
_GOVERNANCE = f"""<?xml version="1.0" encoding="UTF-8"?>
<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
     xsi:noNamespaceSchemaLocation="{_SCHEMA.format("governance")}">
  <domain_access_rules>
    <domain_rule>
      <domains><id_range><min>0</min><max>232</max></id_range></domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>ENCRYPT</discovery_protection_kind>
      <liveliness_protection_kind>ENCRYPT</liveliness_protection_kind>
      <rtps_protection_kind>SIGN</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>true</enable_discovery_protection>
          <enable_liveliness_protection>true</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>ENCRYPT</metadata_protection_kind>
          <data_protection_kind>ENCRYPT</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"""


class KeystoreError(ToolError):
    """A keystore cannot be made here."""


def topics_of(rights: Rights) -> tuple[set[str], set[str]]:
    """The DDS topics that a node publishes and subscribes to, by what it may do in ROS's words.

    ROS names a topic ``rt/...``, the two of a service ``rq/...Request`` and ``rr/...Reply``, and
    an action is three services and two topics.
    """
    publish, subscribe = {"ros_discovery_info"}, {"ros_discovery_info"}
    offered = set(rights.names.get(("services", "reply"), ()))
    asked = set(rights.names.get(("services", "request"), ()))
    told = set(rights.names.get(("topics", "publish"), ()))
    heard = set(rights.names.get(("topics", "subscribe"), ()))
    for how, services, topics in (("execute", offered, told), ("call", asked, heard)):
        for action in rights.names.get(("actions", how), ()):
            services |= {
                f"{action}/_action/{n}" for n in ("send_goal", "cancel_goal", "get_result")
            }
            topics |= {f"{action}/_action/{n}" for n in ("feedback", "status")}
    publish |= {f"rt{name}" for name in told} | {f"rr{name}Reply" for name in offered}
    publish |= {f"rq{name}Request" for name in asked}
    subscribe |= {f"rt{name}" for name in heard} | {f"rq{name}Request" for name in offered}
    subscribe |= {f"rr{name}Reply" for name in asked}
    return publish, subscribe


def _permissions(enclave: str, profiles: Sequence[Rights], now: datetime) -> str:
    """The permissions of one enclave: what its nodes use, and nothing else."""
    form = "%Y-%m-%dT%H:%M:%S"
    publish: set[str] = set()
    subscribe: set[str] = set()
    for rights in profiles:
        told, heard = topics_of(rights)
        publish |= told
        subscribe |= heard
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<dds xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"',
        f'     xsi:noNamespaceSchemaLocation="{_SCHEMA.format("permissions")}">',
        "  <permissions>",
        f"    <grant name={quoteattr(enclave)}>",
        f"      <subject_name>CN={escape(enclave)}</subject_name>",
        f"      <validity><not_before>{now.strftime(form)}</not_before>"
        f"<not_after>{(now + timedelta(days=_DAYS)).strftime(form)}</not_after></validity>",
        "      <allow_rule>",
        "        <domains><id_range><min>0</min><max>232</max></id_range></domains>",
    ]
    for tag, topics in (("publish", publish), ("subscribe", subscribe)):
        lines += [f"        <{tag}>", "          <topics>"]
        lines += [f"            <topic>{escape(name)}</topic>" for name in sorted(topics)]
        lines += ["          </topics>", f"        </{tag}>"]
    lines += ["      </allow_rule>", "      <default>DENY</default>", "    </grant>"]
    return "\n".join([*lines, "  </permissions>", "</dds>"]) + "\n"


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(
        ["openssl", *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise KeystoreError(f"openssl {words[0]} failed: {done.stderr.strip()}")


def _key(path: Path) -> None:
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)


def make_keystore(folder: Path, nodes: Mapping[str, tuple[str, Rights]]) -> int:
    """Make keys and permissions for the nodes of a policy.

    Args:
        folder: The keystore; made, readable for its owner alone.
        nodes: Enclave and rights by full node name; see :func:`kin_tools.policy.read_policy`.

    Returns:
        The number of enclaves.

    Raises:
        KeystoreError: There are keys already, or they cannot be made.
    """
    if shutil.which("openssl") is None:
        raise KeystoreError(
            "openssl was not found: install it (Debian, Ubuntu: apt install openssl)"
        )
    public, private, enclaves = (folder / name for name in ("public", "private", "enclaves"))
    if private.exists():
        raise KeystoreError(f"{folder} has keys already; remove it first if new ones are wanted")
    old = os.umask(0o077)
    try:
        for each in (public, private, enclaves):
            each.mkdir(parents=True)
        key, certificate = private / "ca.key.pem", public / "ca.cert.pem"
        _key(key)
        days = ("-days", str(_DAYS), "-sha256")
        _openssl(
            *("req", "-x509", "-new", "-key", key, "-subj", "/CN=kinstack keystore", *days),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-out", certificate),
        )
        for role in ("identity", "permissions"):
            (private / f"{role}_ca.key.pem").symlink_to(key.name)
            (public / f"{role}_ca.cert.pem").symlink_to(certificate.name)

        def sign(document: Path) -> None:
            words = ("smime", "-sign", "-text", "-in", document, "-signer", certificate)
            _openssl(*words, "-inkey", key, "-out", document.with_suffix(".p7s"))

        governance = enclaves / "governance.xml"
        governance.write_text(_GOVERNANCE)
        sign(governance)
        now = datetime.now(UTC).replace(microsecond=0)
        by_enclave: dict[str, list[Rights]] = {}
        for enclave, rights in nodes.values():
            by_enclave.setdefault(enclave, []).append(rights)
        for enclave, profiles in sorted(by_enclave.items()):
            place = enclaves / enclave.lstrip("/")
            place.mkdir(parents=True)
            _key(place / "key.pem")
            request = place / "request.pem"
            subject = "/CN=" + enclave.replace("/", "\\/")
            _openssl("req", "-new", "-key", place / "key.pem", "-subj", subject, "-out", request)
            _openssl(
                *("x509", "-req", "-in", request, "-CA", certificate, "-CAkey", key, *days),
                *("-set_serial", f"0x{os.urandom(16).hex()}", "-out", place / "cert.pem"),
            )
            request.unlink()
            (place / "permissions.xml").write_text(_permissions(enclave, profiles, now))
            sign(place / "permissions.xml")
            up = Path(*[".."] * enclave.strip("/").count("/"), "..")
            (place / "governance.p7s").symlink_to(up / "governance.p7s")
            for role in ("identity", "permissions"):
                name = f"{role}_ca.cert.pem"
                (place / name).symlink_to(up / ".." / "public" / name)
    finally:
        os.umask(old)
    return len(by_enclave)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="kin_tools.keystore", description="Make keys and permissions for DDS security."
    )
    parser.add_argument("policy", type=Path, help="a policy; see kin_tools.policy")
    parser.add_argument("keystore", type=Path, help="folder to make")
    parser.add_argument(
        "namespaces", nargs="*", default=["/"], help="namespaces that the stacks will have"
    )
    options = parser.parse_args(argv)
    try:
        known = read_policy(options.policy.read_text())
        enclaves = {name: enclave for name, (enclave, _) in known.items()}
        plain = {name: rights for name, (_, rights) in known.items()}
        nodes = {
            there: (enclaves[name], rights)
            for space in options.namespaces or ["/"]
            for name, (there, rights) in zip(plain, moved(plain, space).items(), strict=True)
        }
        count = make_keystore(options.keystore, nodes)
    except (InvalidInput, KeystoreError, OSError) as error:
        print(f"keystore: {error}", file=sys.stderr)
        return 1
    print(f"keys of {count} enclaves are in {options.keystore}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
