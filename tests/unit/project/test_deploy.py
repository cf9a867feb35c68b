"""The files of deploy/ and docker-compose.yml agree with the code, and name no password."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from callslip.config.keys import KEYS, variable
from callslip.tasks.queues import BY_ROLE

ROOT = Path(__file__).parents[3]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
CHART = ROOT / "deploy" / "helm" / "callslip"
ROLES = {"api", *BY_ROLE, "keyword"}
VARIABLES = {variable(key) for key in KEYS}


def is_known(name: str) -> bool:
    return name in (*VARIABLES, "TMPDIR") or name.removesuffix("_FILE") in VARIABLES


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


def own() -> dict[str, dict[str, Any]]:
    return {n: s for n, s in compose()["services"].items() if s["image"] == "callslip"}


def test_compose_runs_each_role_once_with_settings_that_exist() -> None:
    assert {service["command"] for service in own().values()} == {f"run {role}" for role in ROLES}
    assert all(is_known(name) for service in own().values() for name in service["environment"])


def test_compose_gives_the_folder_of_the_keyword_index_to_one_service() -> None:
    keyword = own().pop("keyword")
    assert keyword["volumes"] == ["keyword:/var/lib/callslip"]
    assert "ports" not in keyword
    for name, service in own().items():
        assert "keyword_key" in service["secrets"], name
        if name != "keyword":
            assert service["environment"]["CALLSLIP_KEYWORD__URL"] == "http://keyword:8766"
            assert service["volumes"] == ["data:/var/lib/callslip"]


def test_every_service_of_compose_is_checked_and_limited() -> None:
    for name, service in compose()["services"].items():
        assert service["healthcheck"]["test"], name
        assert service["mem_limit"], name
        assert "no-new-privileges:true" in service["security_opt"], name


def test_compose_reaches_the_stores_inside_only_and_the_api_on_loopback() -> None:
    services = compose()["services"]
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8765:8765"]}
    assert all(services[name]["networks"] == ["stores"] for name in ("valkey", "chroma"))
    assert compose()["networks"]["stores"]["internal"] is True


def test_compose_has_its_passwords_from_files_that_the_script_makes(tmp_path: Path) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert not re.search(r"_PASSWORD:|://[^/\s]*:[^/\s]*@", text)
    (tmp_path / "deploy").mkdir()
    script = shutil.copy(ROOT / "deploy" / "secrets.sh", tmp_path / "deploy")
    files = {Path(secret["file"]) for secret in compose()["secrets"].values()}
    contents = []
    for _ in range(2):
        subprocess.run(["/bin/sh", script], check=True, capture_output=True)
        assert {path.relative_to(tmp_path) for path in tmp_path.glob("secrets/*")} == files
        contents.append({file: (tmp_path / file).read_text() for file in files})
    assert contents[0] == contents[1]
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_run_callslip_without_privileges(unit: Path) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    service = parser["Service"]
    command = "run %i" if "@" in unit.name else "up --no-examples"
    assert service["ExecStart"] == f"/opt/callslip/bin/callslip {command}"
    name, _, folder = service["Environment"].partition("=")
    assert is_known(name)
    assert folder == f"/var/lib/{service['StateDirectory']}"
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert service["KillMode"] == "mixed"  # a step that has begun may end


def test_the_values_of_the_chart_fit_their_schema_and_set_what_exists() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))
    assert all(is_known(name) for name in values["settings"])
    assert values.keys() >= ROLES
    assert "replicas" not in values["maintenance"]


def test_the_chart_renders_a_deployment_for_each_role() -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed: the chart is not rendered")
    run = subprocess.run(
        [helm, "template", "x", str(CHART), "--set", "ingress.enabled=true,keyword.enabled=true"],
        check=True,
        capture_output=True,
        text=True,
    )
    objects = [document for document in yaml.safe_load_all(run.stdout) if document]
    deployments = [o for o in objects if o["kind"] in ("Deployment", "StatefulSet")]
    containers = [o["spec"]["template"]["spec"]["containers"][0] for o in deployments]
    assert {container["args"][1] for container in containers} == ROLES
    assert all(is_known(e["name"]) for container in containers for e in container["env"])
    assert {o["kind"] for o in objects} == {
        "Deployment",
        "StatefulSet",
        "Service",
        "Ingress",
        "PodDisruptionBudget",
    }
