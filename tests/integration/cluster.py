"""A whole Closeknit cluster on loopback for tests: knitd, agents, and the CLI, all in one temporary directory.

The programs are those of the build whose bin directory is in KNIT_BIN. Nothing outlives the `with` block: every process started
here is killed, and so is whatever the jobs left (which tests that care about leftovers check before).
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = os.environ.get("KNIT_BIN", os.path.join(os.path.dirname(__file__), "../../build/release/bin"))
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
PYTHON = "/usr/bin/python3"  # Debian's, which has torch and grpcio


def wait_for(condition, what, timeout=30.0, interval=0.02):
    """Polls until `condition()` is true and returns its value; fails with `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain for: {what}")
        time.sleep(interval)


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def topology(racks, hosts_per_rack, gpus):
    """A fabric in Slurm's format: racks r1.. of hosts h1.. under one core, `gpus` GPUs each."""
    lines = [f"#closeknit: gpus={gpus}"]
    for rack in range(racks):
        first = rack * hosts_per_rack + 1
        lines.append(f"SwitchName=r{rack + 1} Nodes=h[{first}-{first + hosts_per_rack - 1}]")
    lines.append(f"SwitchName=core Switches=r[1-{racks}]")
    return "\n".join(lines) + "\n"


class Cluster:
    """`racks` x `hosts_per_rack` hosts h1, h2, ... with an agent each; `gpus` simulated GPUs a host."""

    def __init__(self, racks=2, hosts_per_rack=2, gpus=2, knitd_args=(), agent_args=()):
        self.racks, self.hosts_per_rack, self.gpus = racks, hosts_per_rack, gpus
        self.hosts = [f"h{i + 1}" for i in range(racks * hosts_per_rack)]
        self.knitd_args, self.agent_args = list(knitd_args), list(agent_args)
        self.dir = tempfile.mkdtemp(prefix="closeknit-test-")
        self.processes = {}
        self.port = 0

    def __enter__(self):
        try:
            self.write_topology()
            self.start_knitd()
            for host in self.hosts:
                self.start_agent(host)
            self.wait_nodes(len(self.hosts))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, error, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        for pid in self.descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if error is not None:
            self.print_logs()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def print_logs(self):
        for name in sorted(os.listdir(self.dir)):
            if name.endswith(".log"):
                with open(self.path(name), encoding="utf-8", errors="replace") as log:
                    print(f"--- {name}\n{''.join(log.readlines()[-30:])}", flush=True)

    def write_topology(self):
        with open(self.path("topology.conf"), "w", encoding="utf-8") as file:
            file.write(topology(self.racks, self.hosts_per_rack, self.gpus))

    def spawn(self, name, argv):
        with open(self.path(f"{name}.log"), "ab") as log:
            process = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", start_new_session=True)
        self.processes[name] = process
        return process

    # -- knitd

    def start_knitd(self, wait=True):
        port_file = self.path("port")
        if os.path.exists(port_file):
            os.unlink(port_file)
        argv = [f"{BIN}/knitd", "--listen", f"127.0.0.1:{self.port}", "--port-file", port_file, "--data", self.path("data"), "--metrics", "off"]
        argv += ["--topology", self.path("topology.conf")] + self.knitd_args
        process = self.spawn("knitd", argv)
        if wait:
            self.port = int(wait_for(lambda: self.read_port(process), "knitd's port file"))

    def read_port(self, process):
        if process.poll() is not None:
            self.print_logs()
            raise AssertionError(f"knitd ended with {process.returncode}")
        try:
            with open(self.path("port"), encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return None

    def kill(self, name, sig=signal.SIGKILL):
        process = self.processes[name]
        process.send_signal(sig)
        process.wait(timeout=30)

    # -- agents

    def start_agent(self, host):
        argv = [f"{BIN}/knit-agent", "--scheduler", f"127.0.0.1:{self.port}", "--node", host, "--address", f"127.0.2.{self.hosts.index(host) + 1}"]
        argv += ["--spool", self.path("spool", host), "--gpus", str(self.gpus)] + self.agent_args
        os.makedirs(self.path("spool", host), exist_ok=True)
        return self.spawn(host, argv)

    def wait_nodes(self, count, state="idle", timeout=30.0):
        def ready():
            return sum(1 for node in self.nodes() if node["state"] == f"NODE_STATE_{state.upper()}") >= count

        wait_for(ready, f"{count} nodes {state}", timeout)

    # -- the CLI

    def environment(self):
        return dict(os.environ, KNIT_SCHEDULER=f"127.0.0.1:{self.port}", NO_COLOR="1")

    def knit(self, *args, check=True, timeout=60.0, cwd=None):
        """Runs `knit ARGS`; returns its standard output."""
        result = self.knit_result(*args, timeout=timeout, cwd=cwd)
        if check and result.returncode != 0:
            raise AssertionError(f"knit {' '.join(args)} exited with {result.returncode}:\n{result.stdout}{result.stderr}")
        return result.stdout

    def knit_result(self, *args, timeout=60.0, cwd=None):
        return subprocess.run([f"{BIN}/knit", *args], capture_output=True, text=True, timeout=timeout, cwd=cwd or "/", env=self.environment(), check=False)

    def submit(self, *args):
        return int(self.knit("submit", "--parsable", *args).split()[0])

    def job(self, job_id):
        return json.loads(self.knit("show", "job", str(job_id), "-o", "json"))

    def jobs(self, *args):
        return json.loads(self.knit("queue", "-t", "all", "-o", "json", *args)).get("jobs", [])

    def nodes(self):
        return json.loads(self.knit("nodes", "-N", "-o", "json")).get("nodes", [])

    def node(self, name):
        return json.loads(self.knit("show", "node", name, "-o", "json"))

    def wait_state(self, job_id, *states, timeout=60.0):
        """Waits until the job is in one of the states, given as in "running"; returns the job."""
        wanted = {f"JOB_STATE_{state.upper()}" for state in states}
        ended = {f"JOB_STATE_{state}" for state in ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")}
        last = {}

        def arrived():
            last["job"] = self.job(job_id)
            state = last["job"]["state"]
            if state in ended and state not in wanted:
                raise AssertionError(f"job {job_id} is {state}, not {states}: {json.dumps(last['job'], indent=1)}")
            return state in wanted

        try:
            wait_for(arrived, f"job {job_id} in {states}", timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; now {json.dumps(last.get('job'), indent=1)}") from None
        return last["job"]

    # -- what runs on the "hosts"

    def marked(self, marker=""):
        """Pids of all live processes of this cluster's jobs whose environment has this text. (Their environment names the spool.)"""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    text = environ.read()
                if marker.encode() in text and f"{self.dir}/".encode() in text and alive(int(entry)):
                    found.append(int(entry))
            except OSError:
                continue
        return found

    def descendants(self):
        """Everything that a job of this cluster started: ranks and shims know this directory by environment or command line."""
        found = set(self.marked())
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as cmdline:
                    if self.dir.encode() in cmdline.read() and alive(int(entry)):
                        found.add(int(entry))
            except OSError:
                continue
        return found - {os.getpid()}

    def shims(self, host=None):
        """Pids of the live knit-shims (of one host)."""
        where = self.path("spool", host or "")
        found = []
        for pid in self.descendants():
            try:
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")) != "knit-shim":
                    continue
                with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                    if where.encode() in cmdline.read():
                        found.append(pid)
            except OSError:
                continue
        return found


class ClusterTestCase(unittest.TestCase):
    """Fails readably, and prints each test's name as it begins."""

    maxDiff = None

    def enter(self, cluster):
        """Begins a cluster that ends with the test; its daemons' logs are printed if the test fails."""
        cluster.__enter__()
        self.addCleanup(cluster.__exit__, None)
        self.addCleanup(lambda: self.has_failed() and cluster.print_logs())
        return cluster

    def has_failed(self):
        result = self._outcome.result
        return any(case is self for case, _ in result.failures + result.errors)

    def assertHosts(self, job, hosts):
        self.assertEqual(job["attempt"]["placement"]["hosts"], hosts)
