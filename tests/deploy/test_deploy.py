"""What lies in ``deploy/`` fits the command, the settings and the package, as far as can be said without an engine."""

import ipaddress
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from keystead.engine import parse
from keystead.settings import all_settings, load_settings
from tests.house.command_lines import accepted

PROJECT = Path(__file__).parents[2]
DEPLOY = PROJECT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
NAMES = {setting.environment_name for setting in all_settings()}
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
GIVEN = {"KEYSTEAD_SECRET": "s" * 40, "DATABASE_PASSWORD": "database-word", "VALKEY_PASSWORD": "valkey-word"}
SERVICE_KEYS = {
    "build", "command", "depends_on", "environment", "healthcheck", "image", "init", "networks", "ports", "restart",
    "stop_grace_period", "volumes",
}


def filled(text: str) -> str:
    """As compose would: ``${NAME:?why}``, ``${NAME:-else}`` and ``$$``."""
    def value(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        assert kind != "?" or name in GIVEN, f"{name} must be given"
        return GIVEN.get(name, rest or "")

    return re.sub(r"\$\{(\w+)(?::([?-])([^}]*))?\}", value, text).replace("$$", "$")


def settings_of(environment: dict[str, str]):
    strange = {name for name in environment if name.startswith("KEYSTEAD_")} - NAMES
    assert not strange, "no such settings"
    return load_settings(environment=environment, file=None)


# -- systemd -----------------------------------------------------------------------------------------------------------


def entries(unit: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_there_is_a_unit_for_each_part():
    commands = {unit.stem.removeprefix("keystead-"): entries(unit)["ExecStart"][0] for unit in UNITS}
    assert set(commands) == {"api", "up", "worker"}
    for name, line in commands.items():
        executable, *arguments = shlex.split(line)
        assert executable == "/opt/keystead/bin/keystead" and accepted(arguments) == name


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_has_rights_of_its_own_and_waits_for_running_work(unit):
    found = entries(unit)
    assert found["User"] == ["keystead"] and found["NoNewPrivileges"] == ["yes"] and found["Restart"] == ["on-failure"]
    words = shlex.split(found["ExecStart"][0])
    grace = float(words[words.index("--grace-seconds") + 1]) if "--grace-seconds" in words else 5.0
    assert float(found["TimeoutStopSec"][0]) > grace + 5
    for line in found.get("Environment", []):
        settings_of(dict([line.split("=", 1)]))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong(tmp_path, unit):
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/keystead/bin/keystead", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=120)
    told = [line for line in done.stderr.splitlines() if unit.name in line]
    assert not told


def test_settings_of_the_example_are_settings():
    lines = (DEPLOY / "keystead.env.example").read_text().splitlines()
    pairs = dict(line.removeprefix("#").split("=", 1) for line in lines if re.match(r"#?KEYSTEAD_\w+=", line))
    settings = settings_of(pairs)
    assert settings.store.url.startswith("postgresql://") and len(settings.installation.secret) >= 32
    parse(settings.valkey.url)


# -- the image ---------------------------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.M))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def test_image_is_built_as_such_images_should_be():
    steps = instructions()
    named = {name for name, _ in steps}
    assert named <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
                     "ENTRYPOINT", "CMD"}
    assert all(re.match(r"python:3\.1\d-slim(?: AS \w+)?$", rest) for name, rest in steps if name == "FROM")
    assert [rest for name, rest in steps if name == "USER"][-1] == "10001", "not root"
    assert all(rest.startswith("[") for name, rest in steps if name in ("ENTRYPOINT", "CMD"))
    assert all(rest.startswith("/") for name, rest in steps if name == "WORKDIR")
    assert all("--no-cache-dir" in rest for name, rest in steps if name == "RUN" and "pip install" in rest)
    assert not any("sudo" in rest or "latest" in rest for _, rest in steps)


def test_image_copies_what_is_there_and_installs_extras_that_exist():
    allowed = {line.removeprefix("!") for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
               if line.startswith("!")}
    for name, rest in instructions():
        if name == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            assert all((PROJECT / source).exists() and source in allowed for source in sources), rest
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = re.search(r"\"\.\[([\w,]+)\]\"", (DEPLOY / "Dockerfile").read_text())[1].split(",")
    assert set(wanted) <= set(extras)


def test_image_runs_a_command_that_exists_with_settings_that_exist():
    steps = dict(instructions())
    assert yaml.safe_load(steps["ENTRYPOINT"]) == ["keystead"] and accepted(yaml.safe_load(steps["CMD"])) == "up"
    pairs = dict(re.findall(r"(\w+)=(\S+)", steps["ENV"]))
    settings = settings_of({name: value for name, value in pairs.items() if name.startswith("KEYSTEAD_")})
    assert settings.http.host == "0.0.0.0" and steps["EXPOSE"] == str(settings.http.port)
    assert f":{settings.http.port}/health" in steps["HEALTHCHECK"]


# -- compose -----------------------------------------------------------------------------------------------------------


def test_services_speak_of_what_is_declared():
    services = COMPOSE["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service["networks"]) <= set(COMPOSE["networks"]), name
        for volume in service.get("volumes", ()):
            assert volume.split(":")[0] in COMPOSE["volumes"], name
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "TLS ends before it is reached from elsewhere"
        if "image" in service and service["image"] != "keystead":
            assert re.fullmatch(r"[\w/]+:\d[\w.-]*", service["image"]), f"{name}: which version?"
        for needed, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], needed
    build = services["api"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"


def test_every_part_runs_a_command_of_ours_with_the_same_settings():
    ours = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "keystead"}
    assert {name: accepted(service["command"]) for name, service in ours.items()} == {
        "api": "api", "dashboard": "api", "worker": "worker"}
    assert ours["api"]["environment"] == ours["worker"]["environment"] == ours["dashboard"]["environment"]
    settings = settings_of({name: filled(value) for name, value in ours["api"]["environment"].items()})
    assert settings.installation.secret == GIVEN["KEYSTEAD_SECRET"] and settings.messaging.lanes == 3
    assert settings.store.url == "postgresql://keystead:database-word@database/keystead"
    assert COMPOSE["services"]["database"]["environment"]["POSTGRES_PASSWORD"] == "${DATABASE_PASSWORD:?}"


def test_addresses_of_the_cluster_are_those_of_its_nodes():
    services = COMPOSE["services"]
    nodes = {name: service["networks"]["inside"]["ipv4_address"] for name, service in services.items()
             if name.startswith("valkey-")}
    assert len(set(nodes.values())) == 6
    subnet = ipaddress.ip_network(COMPOSE["networks"]["inside"]["ipam"]["config"][0]["subnet"])
    assert all(ipaddress.ip_address(address) in subnet for address in nodes.values())
    told = parse(filled(services["api"]["environment"]["KEYSTEAD_VALKEY_URL"]))
    assert {host for host, _ in told.hosts} <= set(nodes.values()) and told.password == "valkey-word"
    created = re.findall(r"(\d+\.\d+\.\d+\.\d+):6379", " ".join(services["cluster"]["command"]))
    assert set(created) == set(nodes.values()) and set(services["cluster"]["depends_on"]) == set(nodes)
