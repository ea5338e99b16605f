"""The latency history in containers: the files fit together, and every command is one that the history has.

No container runs here, and none was tried.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from heliograph.monitor.history.commands import command

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/spark"
CONTAINERFILE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))
USER = 10001
SPARK = {"master": "master.Master", "worker": "worker.Worker"}


def parsed(words: list[str]) -> argparse.Namespace:
    """What `heliograph` makes of these words."""
    parser = argparse.ArgumentParser()
    command(parser.add_subparsers(required=True))
    return parser.parse_args([re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in words])


def template_of(one: dict[str, Any]) -> dict[str, Any]:
    """The pod of a Deployment or a CronJob."""
    template: dict[str, Any] = (one["spec"] if one["kind"] == "Deployment" else one["spec"]["jobTemplate"]["spec"])[
        "template"
    ]
    return template


def test_the_image_has_what_drivers_and_workers_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (named,) = re.findall(r"/source\[(.+)\]", CONTAINERFILE)
    assert named.split(",") == ["history", "s3"]
    assert {"history", "s3"} <= set(extras)
    listed = (ROOT / "deploy/debian-packages.txt").read_text(encoding="utf-8").split()
    build, run = re.findall(r"--no-install-recommends ((?:[a-z0-9-]+ ?)+)", CONTAINERFILE)
    assert [name for name in build.split() if name not in listed] == []
    assert run.split() == ["python3", "zlib1g", "openjdk-17-jre-headless"]
    assert f"useradd --uid {USER} " in CONTAINERFILE
    assert f"\nUSER {USER}\n" in CONTAINERFILE


def test_master_and_workers_of_compose_find_each_other() -> None:
    for name, role in SPARK.items():
        assert SERVICES[name]["entrypoint"] == ["spark-class", f"org.apache.spark.deploy.{role}"]
    words = SERVICES["master"]["command"]
    master = f"spark://{words[words.index('--host') + 1]}:{words[words.index('--port') + 1]}"
    assert words[words.index("--host") + 1] == "master"
    assert SERVICES["worker"]["command"][-1] == master
    assert {parsed(SERVICES[name]["command"]).master for name in ("stream", "rollup")} == {master}
    assert SERVICES["master"]["build"]["dockerfile"] == "deploy/spark/Containerfile"
    assert {one for service in SERVICES.values() for one in service.get("depends_on", [])} <= set(SERVICES)


@pytest.mark.parametrize("name", sorted(set(SERVICES) - set(SPARK)))
def test_a_command_of_compose_uses_the_shared_directories(name: str) -> None:
    service = SERVICES[name]
    args = parsed(service["command"])
    assert args.history == Path("/data/history")
    assert getattr(args, "spool", Path("/data/spool")) == Path("/data/spool")
    assert ("profiles" in service) == (name != "stream")


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_of_compose_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["image"] == "heliograph-spark"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["volumes"] == ["data:/data"]
    assert service["tmpfs"] == ["/tmp"]
    assert "ports" not in service
    assert "mem_limit" in service


@pytest.mark.parametrize("one", OBJECTS, ids=[one["metadata"]["name"] for one in OBJECTS])
def test_a_pod_of_kubernetes_writes_the_history_of_the_store(one: dict[str, Any]) -> None:
    template = template_of(one)
    spec = template["spec"]
    assert template["metadata"]["labels"] == {"app.kubernetes.io/name": one["metadata"]["name"]}
    if one["kind"] == "Deployment":
        assert one["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    assert spec["securityContext"]["runAsUser"] == USER
    assert spec["automountServiceAccountToken"] is False
    (container,) = spec["containers"]
    args = parsed(container["args"])
    assert str(args.history) == "s3://latency/history"
    assert str(getattr(args, "spool", "s3://latency/spool")) == "s3://latency/spool"
    assert container["image"] == "heliograph-spark"
    assert container["envFrom"] == [{"secretRef": {"name": "heliograph-store"}}]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["volumeMounts"] == [{"name": spec["volumes"][0]["name"], "mountPath": "/tmp"}]
    assert "memory" in container["resources"]["limits"]


def test_kubernetes_compacts_before_it_prunes() -> None:
    schedules = {one["metadata"]["name"]: one["spec"]["schedule"] for one in OBJECTS if one["kind"] == "CronJob"}
    assert set(schedules) == {"history-compact", "history-prune"}
    assert schedules["history-compact"] < schedules["history-prune"]
