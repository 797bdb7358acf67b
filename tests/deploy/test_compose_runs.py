"""Every service of ``deploy/compose.yaml`` as a plain process: its command, environment, healthcheck and way to stop.

An engine gives each container an address; here each has one of its own on loopback, so that ports stay as they are.
What differs besides: PostgreSQL is the one of the tests, reached by its socket with the user and password of the file;
``valkey-cli`` is a stand-in; and where this interpreter may not be run by others, so does nobody else here.
"""

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from keystead.engine.embedded_process import server_binary

from .test_deploy import COMPOSE, GIVEN, filled, instructions

USER = 10001
PATIENCE_SECONDS = 120.0


class Machine:
    """Where the services run: a network of loopback addresses, volumes, and programs by the names the file uses."""

    def __init__(self, directory: Path, sockets: Path) -> None:
        self.directory, self._sockets = directory, sockets
        self._net = f"127.{random.randint(32, 250)}.{random.randint(1, 250)}"
        self._hosts = {name: f"{self._net}.{20 + number}" for number, name in enumerate(COMPOSE["services"])}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._programs = directory / "bin"
        self._programs.mkdir()
        (self._programs / "valkey-server").symlink_to(server_binary())
        for name, module in (("valkey-cli", "tests.deploy.valkey_cli"), ("keystead", "keystead.cli")):
            program = self._programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m {module} "$@"\n')
            program.chmod(0o755)
        self._python = self._programs / "python"
        self._python.symlink_to(sys.executable)
        self._user = USER if os.geteuid() == 0 and self._may_run(USER) else None

    def _may_run(self, user: int) -> bool:
        try:
            return subprocess.run([sys.executable, "-c", "import keystead"], user=user, cwd="/").returncode == 0
        except OSError:
            return False

    def address(self, name: str) -> str:
        given = COMPOSE["services"][name]["networks"]
        fixed = given["inside"]["ipv4_address"] if isinstance(given, dict) else ""
        return self.here(fixed) if fixed else self._hosts[name]

    def here(self, text: str) -> str:
        """The same text with what an engine would provide replaced by what is here."""
        text = filled(text).replace("172.31.87", self._net)
        text = text.replace("file:///files", (self.directory / "files").as_uri())
        return text.replace("@database/keystead", f"@/keystead?host={self._sockets}")

    def environment(self, name: str) -> dict[str, str]:
        service = COMPOSE["services"][name]
        found = {key: self.here(str(value)) for key, value in service.get("environment", {}).items()}
        if service["image"] == "keystead":
            for part in shlex.split(dict(instructions())["ENV"]):
                key, value = part.split("=", 1)
                found.setdefault(key, value)
            found["KEYSTEAD_HTTP_HOST"] = self.address(name)
        path = f"{self._programs}:{os.environ['PATH']}"
        return found | {
            "PATH": path, "HOME": str(self.home(name)), "STANDS_FOR_LOCALHOST": self.address(name),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))),
        }

    def home(self, name: str) -> Path:
        place = self.directory / f"home-{name}"
        place.mkdir(exist_ok=True)
        return place

    def command(self, name: str) -> list[str]:
        service = COMPOSE["services"][name]
        words = [self.here(word) for word in service["command"]]
        if name.startswith("valkey-"):  # an engine gives it a network and a volume of its own
            address = self.address(name)
            words[-1] += f" --bind {address} --bind-source-addr {address} --dir {self.home(name)}"
        entry = yaml.safe_load(dict(instructions())["ENTRYPOINT"]) if service["image"] == "keystead" else []
        return [*entry, *words]

    def start(self, name: str) -> None:
        log = (self.directory / f"{name}.log").open("wb")
        user = self._user if COMPOSE["services"][name]["image"] == "keystead" else None
        if user is not None:
            os.chown(self.home(name), user, user)
            os.chown(self.directory / "files", user, user)
        self.running[name] = subprocess.Popen(
            self.command(name), env=self.environment(name), cwd=self.home(name), stdout=log, stderr=log, user=user,
            start_new_session=True,
        )

    def run(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """A command in the container of a service."""
        return subprocess.run(command or self.command(name), env=self.environment(name), cwd=self.home(name), text=True,
                              capture_output=True, timeout=PATIENCE_SECONDS)

    def wait_until_healthy(self, name: str) -> None:
        """As an engine: by the healthcheck of the service, or that of the image."""
        service = COMPOSE["services"][name]
        check = service.get("healthcheck", {}).get("test")
        if check is None:
            check = yaml.safe_load(dict(instructions())["HEALTHCHECK"].partition("CMD ")[2])
            command = [self.here(word).replace("127.0.0.1", self.address(name)) for word in check]
        else:
            assert check[0] == "CMD-SHELL"
            command = ["sh", "-c", self.here(check[1])]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.run(name, *command).returncode:
            assert self.running[name].poll() is None, self.log(name)
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.2)

    def log(self, name: str) -> str:
        return f"{name}:\n{(self.directory / f'{name}.log').read_text(errors='replace')[-4000:]}"

    def stop(self, name: str) -> int:
        """By the signal of the image, within the time that the service is given."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        given = COMPOSE["services"][name].get("stop_grace_period", "10s")
        return process.wait(float(given.removesuffix("s")) + 20)  # a busy machine

    def kill_all(self) -> None:
        for process in self.running.values():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def machine(tmp_path_factory, postgresql):
    directory = tmp_path_factory.mktemp("compose")
    (directory / "files").mkdir(mode=0o700)
    user, name = (COMPOSE["services"]["database"]["environment"][key] for key in ("POSTGRES_USER", "POSTGRES_DB"))
    postgresql.with_password(user, GIVEN["DATABASE_PASSWORD"])
    postgresql.run(f"CREATE DATABASE {name} OWNER {user}")
    sockets = Path(postgresql.url(name).partition("host=")[2])
    with ExitStack() as stack:
        stack.callback(postgresql.run, f"DROP ROLE {user}")
        stack.callback(postgresql.run, f"DROP DATABASE {name} WITH (FORCE)")
        made = Machine(directory, sockets)
        stack.callback(made.kill_all)
        yield made


def call(url: str, key: str, method: str = "GET", body: object = None) -> tuple[int, dict[str, object]]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
                                     method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        return error.code, {}


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
def test_the_services_of_the_compose_file_work_together(machine):
    nodes = [name for name in COMPOSE["services"] if name.startswith("valkey-")]
    for name in nodes:
        machine.start(name)
    for name in nodes:
        machine.wait_until_healthy(name)
    assert machine.run(nodes[0], "sh", "-c", "REDISCLI_AUTH= valkey-cli dbsize").stderr.count("NOAUTH")
    for _ in range(2):  # the second time it finds the cluster made
        made = machine.run("cluster")
        assert made.returncode == 0, made
    last = machine.address(nodes[5])
    assert "cluster_size:3" in machine.run("cluster", "valkey-cli", "-h", last, "cluster", "info").stdout

    for name in ("api", "dashboard", "worker"):
        machine.start(name)
    for name in ("api", "dashboard"):
        machine.wait_until_healthy(name)
    created = machine.run("api", "keystead", "admin", "key", "create", "shop", "--scope", "*", "--format", "json")
    key = json.loads(created.stdout)["key"]
    api, pages = (f"http://{machine.address(name)}:8400" for name in ("api", "dashboard"))

    person = {"provider": "shop", "provider_sub": "1", "given_name": "Ada", "timezone": "Europe/Berlin"}
    assert call(f"{api}/api/1/users", "ksk_no_no", "POST", person)[0] == 401
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := call(f"{api}/api/1/users", key, "POST", person))[0] == 401:  # a new key is known within seconds
        assert time.monotonic() < deadline
        time.sleep(0.2)
    status, told = answer
    assert status == 201, answer
    one = f"/api/1/users/{told['sub']}"
    assert call(pages + one, key)[0] == 200, "the other process reads the same database"
    assert call(api + one, key, "DELETE")[0] == 202
    while call(api + one, key)[0] != 404:  # a worker erases
        assert time.monotonic() < deadline, machine.log("worker")
        time.sleep(0.2)
    with urllib.request.urlopen(f"{pages}/login", timeout=30) as page:
        assert page.status == 200

    for name in ("api", "dashboard", "worker"):
        assert machine.stop(name) == 0, machine.log(name)
    assert "Traceback" not in machine.log("api") + machine.log("dashboard") + machine.log("worker")
