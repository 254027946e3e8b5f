"""Write what a deployment installs as a CycloneDX file: locked packages and vendored browser files.

Usage: python requirements/sbom.py OUTPUT

The locks name no files, so each hash of a package is a distribution of its own; one of them is
installed. The same checkout gives the same bytes: no time is written, and the serial number is a
digest of the rest.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements/uv.txt", "requirements/runtime.txt")
VENDOR = "static/vendor"
# An entry of a lock: a version, its hashes, and in comments the packages that need it.
ENTRY = re.compile(
    r"(?P<name>[\w.-]+)(\[.*\])?==(?P<version>[^\s;\\]+)( ; (?P<marker>[^\\]+?))? \\"
)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
PARENT = re.compile(r"(?:# via|#  ) ([\w.-]+)")
ROW = re.compile(
    r"^\| (?P<file>\S+) \| (?P<package>\S+) \| (?P<version>\S+)"
    r" \| \[(?P<licence>[^\]]+)\]\(\S+\) \| (?P<digest>[0-9a-f]{64}) \|$",
    re.MULTILINE,
)
Component = dict[str, Any]


def describe() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    root = {"type": "application", "bom-ref": project["name"], "name": project["name"]}
    root |= {"version": project["version"], "licenses": licenses(project["license"])}
    needed = [*locked(project["name"]), *((each, {project["name"]}) for each in vendored())]
    components = [component for component, _ in needed]
    edges = [
        {
            "ref": parent["bom-ref"],
            "dependsOn": [each["bom-ref"] for each, names in needed if parent["name"] in names],
        }
        for parent in [root, *components]
    ]
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        # Read from the locks; no image was looked through.
        "metadata": {"lifecycles": [{"phase": "pre-build"}], "component": root},
        "components": components,
        "dependencies": edges,
    }
    return bom | {"serialNumber": uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bom)).urn}


def locked(project: str) -> Iterator[tuple[Component, set[str]]]:
    """Every locked version, also of other systems and Pythons, and the names of what needs it: the
    project, if no package does."""
    known = tomllib.loads((ROOT / "requirements" / "licences.toml").read_text("utf-8"))
    for lock in LOCKS:
        for entry in re.split(r"\n(?=\S)", (ROOT / lock).read_text("utf-8").strip()):
            found = ENTRY.match(entry)
            if not found:
                raise SystemExit(f"sbom: {lock} has an entry that cannot be read: {entry[:80]}")
            component = library("pypi", found["name"], found["version"], known.get(found["name"]))
            component["externalReferences"] = [
                {"type": "distribution", "url": component["purl"], "hashes": sha256(digest)}
                for digest in HASH.findall(entry)
            ]
            if found["marker"]:
                marker = {"name": "uv:package:marker", "value": found["marker"]}
                component["properties"] = [marker]
            yield component, set(PARENT.findall(entry)) or {project}


def vendored() -> list[Component]:
    """Each npm package of `static/vendor`, with the files from it as its components."""
    libraries: dict[str, Component] = {}
    for row in ROW.finditer((ROOT / VENDOR / "README.md").read_text("utf-8")):
        found = library("npm", row["package"], row["version"], row["licence"])
        file = {"type": "file", "name": f"{VENDOR}/{row['file']}", "version": row["version"]}
        file |= {"hashes": sha256(row["digest"]), "licenses": licenses(row["licence"])}
        libraries.setdefault(found["purl"], found | {"components": []})["components"].append(file)
    return list(libraries.values())


def library(kind: str, name: str, version: str, licence: str | None) -> Component:
    purl = f"pkg:{kind}/{name}@{version}"
    found = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    return found | ({"licenses": licenses(licence)} if licence else {})


def licenses(expression: str) -> list[dict[str, Any]]:
    return [{"expression": expression} if " " in expression else {"license": {"id": expression}}]


def sha256(digest: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest}]


if __name__ == "__main__":
    output, bom = Path(sys.argv[1]), describe()
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(bom, indent=1) + "\n", encoding="ascii")
    print(f"sbom: {len(bom['components'])} packages in {output}")
