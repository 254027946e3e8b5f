"""`make sbom`: a CycloneDX file of all that a deployment installs, valid and reproducible."""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing
from packageurl import PackageURL
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "static" / "vendor"
Bom = dict[str, Any]


def write(path: Path, **environment: str) -> bytes:
    command = [sys.executable, ROOT / "requirements" / "sbom.py", path]
    subprocess.run(command, cwd=path.anchor, env=os.environ | environment, check=True)
    return path.read_bytes()


@pytest.fixture(scope="module")
def bom(tmp_path_factory: pytest.TempPathFactory) -> Bom:
    return json.loads(write(tmp_path_factory.mktemp("sbom") / "new" / "sbom.json"))


def locked() -> dict[str, set[str]]:
    """The hashes of each locked version by its address, read as pip reads a lock."""
    found = {}
    for name in ("runtime.txt", "uv.txt"):
        text = (ROOT / "requirements" / name).read_text("utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            wanted, *hashes = line.partition("#")[0].split(" --hash=sha256:")
            if wanted.strip():
                one = Requirement(wanted)
                [version] = one.specifier
                purl = f"pkg:pypi/{one.name}@{version.version}"
                found[purl] = {digest.strip() for digest in hashes}
    return found


def kept() -> dict[str, set[str]]:
    """The digest of each vendored file by its place."""
    return {
        path.relative_to(ROOT).as_posix(): {hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in VENDOR.rglob("*")
        if path.suffix in {".js", ".css", ".woff2"}
    }


def listed(bom: Bom) -> dict[str, set[str]]:
    """The same of what the file lists."""
    packages = {
        each["purl"]: {one["hashes"][0]["content"] for one in each["externalReferences"]}
        for each in bom["components"]
        if each["purl"].startswith("pkg:pypi/")
    }
    files = [file for each in bom["components"] for file in each.get("components", [])]
    return packages | {file["name"]: {file["hashes"][0]["content"]} for file in files}


def test_it_fits_the_schema(bom: Bom) -> None:
    version = SchemaVersion.from_version(bom["specVersion"])
    problem = JsonStrictValidator(version).validate_str(json.dumps(bom))
    assert problem is None, str(problem)


def test_every_locked_package_and_vendored_file_is_listed_with_its_hashes(bom: Bom) -> None:
    assert len(locked()) > 80
    assert len(kept()) > 20
    assert listed(bom) == locked() | kept()


def no_package(bom: Bom) -> None:
    bom["components"].pop(3)


def no_hash(bom: Bom) -> None:
    bom["components"][3]["externalReferences"].pop()


def no_vendored_file(bom: Bom) -> None:
    bom["components"][-1]["components"].pop()


def another_hash(bom: Bom) -> None:
    bom["components"][-1]["components"][0]["hashes"][0]["content"] = "0" * 64


@pytest.mark.parametrize("spoil", [no_package, no_hash, no_vendored_file, another_hash])
def test_a_list_that_lacks_something_is_noticed(bom: Bom, spoil: Callable[[Bom], None]) -> None:
    spoilt = deepcopy(bom)
    spoil(spoilt)
    assert listed(spoilt) != locked() | kept()


def test_an_entry_of_a_lock_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "static/vendor/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "requirements").mkdir()
    for path in (ROOT / "requirements").iterdir():
        text = path.read_text("utf-8").replace("\ndjango==", "\ndjango @ ")
        (tmp_path / "requirements" / path.name).write_text(text, "utf-8")
    command = [sys.executable, tmp_path / "requirements" / "sbom.py", tmp_path / "sbom.json"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "requirements/runtime.txt has an entry that cannot be read: django @" in refused.stderr
    assert not (tmp_path / "sbom.json").exists()


def test_the_same_checkout_gives_the_same_bytes(tmp_path: Path) -> None:
    first = write(tmp_path / "first.json", PYTHONHASHSEED="1")
    assert write(tmp_path / "second.json", PYTHONHASHSEED="2", TZ="Asia/Tokyo") == first
    assert b"timestamp" not in first


def test_every_component_has_an_address_and_a_licence_of_the_list_of_spdx(bom: Bom) -> None:
    spdx = get_spdx_licensing()
    for each in bom["components"]:
        assert PackageURL.from_string(each["purl"]).to_string() == each["purl"]
        for one in [each, *each.get("components", [])]:
            [licence] = one["licenses"]
            text = licence.get("expression") or licence["license"]["id"]
            assert spdx.validate(text).errors == [], one["name"]


def test_the_list_of_licences_names_the_locked_packages_and_no_others() -> None:
    listed = tomllib.loads((ROOT / "requirements" / "licences.toml").read_text("utf-8"))
    assert set(listed) == {PackageURL.from_string(purl).name for purl in locked()}


def test_a_licence_is_the_one_that_the_installed_package_declares() -> None:
    listed = tomllib.loads((ROOT / "requirements" / "licences.toml").read_text("utf-8"))
    declared = {
        name: metadata.metadata(name)["License-Expression"]
        for name in listed.keys() & {one.name.lower() for one in metadata.distributions()}
    }
    known = {name: licence for name, licence in declared.items() if licence}
    assert len(known) > 30
    assert {name: listed[name] for name in known} == known


def test_what_needs_what_is_listed(bom: Bom) -> None:
    needs = {each["ref"]: set(each["dependsOn"]) for each in bom["dependencies"]}
    direct = {PackageURL.from_string(purl).name for purl in needs["blindspot"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {Requirement(one).name for one in project["dependencies"]} <= direct
    assert needs.keys() - {"blindspot"} == set().union(*needs.values())


def test_make_sbom_writes_it_to_var(tmp_path: Path) -> None:
    (tmp_path / "python.stamp").touch()
    command = ["make", "--dry-run", "sbom", f"VENV={tmp_path}", "PYTHON="]
    planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 'python requirements/sbom.py "var/sbom.cdx.json"' in planned.stdout
