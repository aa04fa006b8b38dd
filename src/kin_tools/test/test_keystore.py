"""Keys for DDS security: openssl itself says whether they fit together."""

import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kin_tools.keystore import KeystoreError, main, make_keystore, topics_of
from kin_tools.policy import Rights, read_policy

ROOT = Path(__file__).resolve().parents[3]
POLICY = ROOT / "docker" / "security" / "policy.xml"


def openssl(*words):
    return subprocess.run(
        ["openssl", *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def keystore(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys") / "keystore"
    assert main([str(POLICY), str(folder), "/", "/control"]) == 0
    return folder


def enclaves():
    return sorted({enclave for enclave, _ in read_policy(POLICY.read_text()).values()})


def place(keystore, enclave):
    return keystore / "enclaves" / enclave.lstrip("/")


@pytest.mark.parametrize("enclave", enclaves())
def test_every_node_has_an_identity_and_permissions_that_the_authority_signed(keystore, enclave):
    here = place(keystore, enclave)
    authority = here / "identity_ca.cert.pem"
    assert openssl("verify", "-CAfile", authority, here / "cert.pem").returncode == 0
    subject = openssl("x509", "-in", here / "cert.pem", "-noout", "-subject", "-nameopt", "RFC2253")
    assert subject.stdout.strip() == f"subject=CN={enclave}"
    public = openssl("x509", "-in", here / "cert.pem", "-noout", "-pubkey").stdout
    assert openssl("pkey", "-in", here / "key.pem", "-pubout").stdout == public
    for name in ("permissions", "governance"):
        signed = openssl(
            *("smime", "-verify", "-text", "-in", here / f"{name}.p7s"),
            *("-CAfile", here / "permissions_ca.cert.pem"),
        )
        assert signed.returncode == 0, signed.stderr
        original = here if name == "permissions" else keystore / "enclaves"
        text = (original / f"{name}.xml").read_text()
        assert signed.stdout.split() == text.split()


def test_a_changed_permission_is_not_signed(keystore, tmp_path):
    here = place(keystore, "/kinstack/ft_controller")
    signed = (here / "permissions.p7s").read_text()
    forged = tmp_path / "forged.p7s"
    forged.write_text(signed.replace("DENY", "ALLOW"))
    authority = here / "permissions_ca.cert.pem"
    assert openssl("smime", "-verify", "-in", forged, "-CAfile", authority).returncode != 0


def test_permissions_are_what_the_policy_allows_in_both_namespaces(keystore):
    for name, (enclave, rights) in read_policy(POLICY.read_text()).items():
        root = ElementTree.parse(place(keystore, enclave) / "permissions.xml").getroot()
        assert root.findtext(".//subject_name") == f"CN={enclave}"
        assert root.findtext(".//default") == "DENY"
        granted = [
            {t.text for t in root.iter(tag) for t in t.iter("topic")}
            for tag in ("publish", "subscribe")
        ]
        for topics, allowed in zip(topics_of(rights), granted, strict=True):
            assert topics <= allowed, name
            # The same again for the other namespace, less what is the same for everybody.
            assert len(allowed) <= 2 * len(topics)


def test_ros_names_become_those_of_dds():
    rights = Rights()
    rights.add("topics", "publish", ["/a"])
    rights.add("topics", "subscribe", ["/b"])
    rights.add("services", "reply", ["/c"])
    rights.add("services", "request", ["/d"])
    rights.add("actions", "execute", ["/e"])
    publish, subscribe = topics_of(rights)
    goal = "/e/_action/send_goal"
    assert {"rt/a", "rr/cReply", "rq/dRequest", "ros_discovery_info"} <= publish
    assert {f"rr{goal}Reply", "rt/e/_action/feedback", "rt/e/_action/status"} <= publish
    assert {"rt/b", "rq/cRequest", "rr/dReply", f"rq{goal}Request"} <= subscribe
    assert "rt/a" not in subscribe and "rt/e/_action/status" not in subscribe


def test_only_the_owner_reads_keys_and_they_are_never_overwritten(keystore):
    for path in [keystore, *keystore.rglob("*")]:
        assert path.is_symlink() or path.stat().st_mode & 0o077 == 0, path
    before = (keystore / "private" / "ca.key.pem").read_bytes()
    with pytest.raises(KeystoreError, match="already"):
        make_keystore(keystore, {})
    assert (keystore / "private" / "ca.key.pem").read_bytes() == before


def test_without_openssl_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KeystoreError, match="apt install openssl"):
        make_keystore(tmp_path / "keys", {})
    assert not (tmp_path / "keys").exists()
