"""Containers and Kubernetes: the files fit together, and the fleet of compose.yaml runs as written.

No container runs here. The image was built and its fleet run by hand with buildah; Kubernetes was not tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/containers"
CONTAINERFILE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
OURS = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "heliograph"}
OBJECTS: dict[str, Any] = {
    one["kind"]: one
    for one in yaml.safe_load_all((ROOT / "deploy/kubernetes/example.yaml").read_text(encoding="utf-8"))
}
POD: dict[str, Any] = OBJECTS["Deployment"]["spec"]["template"]
USER = 10001
FLEET = [sys.executable, "-m", "tests.deploy.compose_fleet"]


def test_the_image_takes_what_it_needs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (named,) = re.findall(r"/source\[(.+)\]", CONTAINERFILE)
    assert set(named.split(",")) <= set(extras)
    listed = (ROOT / "deploy/debian-packages.txt").read_text(encoding="utf-8").split()
    (build, run) = re.findall(r"--no-install-recommends ((?:[a-z0-9-]+ ?)+)", CONTAINERFILE)
    assert [name for name in build.split() if name not in listed] == []
    assert run.split() == ["python3", "zlib1g"]
    assert f"useradd --uid {USER} " in CONTAINERFILE
    assert f"\nUSER {USER}\n" in CONTAINERFILE
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert [name for name in kept if not (ROOT / name).exists()] == []
    # A link in a package may lead to another top folder.
    for folder in ("engine", "monitor", "exporters", "dashboards"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_symlink():
                assert path.resolve().relative_to(ROOT).parts[0] in kept, path


def test_compose_names_files_that_exist() -> None:
    boards = set()
    for name, service in COMPOSE["services"].items():
        for volume in service["volumes"]:
            source, target = volume.split(":")[:2]
            if source.startswith("."):
                assert (FOLDER / source).exists(), f"{name}: {source}"
                boards |= {Path(source).name} if target.startswith("/boards/") else set()
            else:
                assert source in COMPOSE["volumes"], f"{name}: {source}"
    assert boards == {path.name for path in (ROOT / "deploy/grafana").glob("*.json")}
    assert [one for service in OURS.values() for one in service.get("depends_on", []) if one not in OURS] == []
    assert f"uid={USER}" in COMPOSE["volumes"]["segments"]["driver_opts"]["o"]


def test_grafana_finds_prometheus_and_the_boards() -> None:
    sources = yaml.safe_load((FOLDER / "grafana/datasources/heliograph.yaml").read_text(encoding="utf-8"))
    (source,) = sources["datasources"]
    assert (
        f"--web.listen-address={source['url'].removeprefix('http://')}" in COMPOSE["services"]["prometheus"]["command"]
    )
    rules = (ROOT / "deploy/grafana/alerting/heliograph.json").read_text(encoding="utf-8")
    assert f'"datasourceUid": "{source["uid"]}"' in rules
    providers = yaml.safe_load((FOLDER / "grafana/dashboards/heliograph.yaml").read_text(encoding="utf-8"))
    assert [one["options"]["path"] for one in providers["providers"]] == ["/boards"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_service_of_compose_is_confined(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"] == ["segments:/run/heliograph"]
    assert service["pid"] == "host"


def test_the_fleet_of_compose_runs(tmp_path: Path) -> None:
    if not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("needs unshare and ip")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("network namespaces are not permitted")
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *FLEET],
        cwd=ROOT,
        env={**os.environ, "HELIOGRAPH_SEGMENT_DIR": str(tmp_path / "segments")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"receivers": ["desk", "slow"], "live": True, "ended": []}


def test_the_objects_of_kubernetes_find_each_other() -> None:
    labels = POD["metadata"]["labels"]
    assert OBJECTS["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    service = OBJECTS["Service"]
    assert service["spec"]["selector"] == labels
    assert OBJECTS["ServiceMonitor"]["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (exporter,) = (one for one in POD["spec"]["containers"] if one["name"] == "exporter")
    (port,) = exporter["ports"]
    (forward,) = service["spec"]["ports"]
    (endpoint,) = OBJECTS["ServiceMonitor"]["spec"]["endpoints"]
    assert {port["name"], forward["targetPort"], endpoint["port"], forward["name"]} == {"metrics"}
    assert exporter["args"][-1].endswith(f":{port['containerPort']}")
    server = (ROOT / "exporters/prometheus.py").read_text(encoding="utf-8")
    for probe in ("livenessProbe", "readinessProbe"):
        assert f'"{exporter[probe]["httpGet"]["path"]}"' in server


def test_the_pod_is_confined_and_shares_statistics_and_processes() -> None:
    spec = POD["spec"]
    assert spec["shareProcessNamespace"] is True
    assert spec["securityContext"]["runAsUser"] == USER
    (volume,) = spec["volumes"]
    assert volume["emptyDir"]["medium"] == "Memory"
    for container in spec["containers"]:
        assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/run/heliograph"}]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert "memory" in container["resources"]["limits"]


def test_the_rules_of_kubernetes_are_those_of_prometheus() -> None:
    rule = yaml.safe_load((ROOT / "deploy/kubernetes/alerts.yaml").read_text(encoding="utf-8"))
    assert rule["kind"] == "PrometheusRule"
    rules = yaml.safe_load((ROOT / "deploy/prometheus/rules/heliograph.yml").read_text(encoding="utf-8"))
    assert rule["spec"] == rules
    labels = [one["replacement"] for one in OBJECTS["ServiceMonitor"]["spec"]["endpoints"][0]["relabelings"]]
    assert labels == [tomllib.loads((ROOT / "deploy/alerts.toml").read_text(encoding="utf-8"))["scrape"]["job"]]
