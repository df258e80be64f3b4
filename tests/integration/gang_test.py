"""The way of a job with real processes: placed, started as one gang, ended with one verdict, nothing left behind."""

import os
import signal
import socket
import unittest

from cluster import PYTHON, Cluster, ClusterTestCase, wait_for


class GangTest(ClusterTestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(racks=2, hosts_per_rack=2, gpus=2)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    def tearDown(self):
        wait_for(lambda: not self.cluster.shims(), "all supervisors gone")
        self.cluster.wait_nodes(4)

    def test_ranks_get_torchruns_environment_and_follow_the_fabric(self):
        out = self.cluster.path("env")
        os.makedirs(out)
        script = f"env -0 > {out}/$RANK; cat $KNIT_HOSTFILE > {out}/hostfile.$RANK"
        job = self.cluster.submit("-J", "environment", "-N", "4", "--gpus-per-node", "2", "--", "sh", "-c", script)
        done = self.cluster.wait_state(job, "completed")
        hosts = done["attempt"]["placement"]["hosts"]
        self.assertIn(hosts, (["h1", "h2", "h3", "h4"], ["h3", "h4", "h1", "h2"]), "ranks follow the racks")
        seen = {}
        for rank in range(8):
            with open(f"{out}/{rank}", "rb") as file:
                env = dict(entry.split("=", 1) for entry in file.read().decode().rstrip("\0").split("\0"))
            seen[rank] = env
            node = rank // 2
            expected = {
                "RANK": rank, "LOCAL_RANK": rank % 2, "WORLD_SIZE": 8, "LOCAL_WORLD_SIZE": 2, "GROUP_RANK": node,
                "GROUP_WORLD_SIZE": 4, "TORCHELASTIC_RESTART_COUNT": 0, "KNIT_JOB_ID": job, "KNIT_ATTEMPT": 1,
                "KNIT_NODE": hosts[node], "CUDA_VISIBLE_DEVICES": "0,1",
            }
            for name, value in expected.items():
                self.assertEqual(env.get(name), str(value), f"{name} of rank {rank}")
        for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "KNIT_NODELIST"):
            self.assertEqual(len({env[name] for env in seen.values()}), 1, name)
        first = self.cluster.hosts.index(hosts[0])
        self.assertEqual(seen[0]["MASTER_ADDR"], f"127.0.2.{first + 1}")
        self.assertEqual(seen[0]["MASTER_PORT"], str(done["attempt"]["master_port"]))
        for rank in range(8):
            with open(f"{out}/hostfile.{rank}", encoding="utf-8") as file:
                listed = [line.split()[0] for line in file if line.strip() and not line.startswith("#")]
            self.assertEqual(listed, hosts, "the host file is in rank order")

    def test_run_follows_logs_and_exits_with_the_jobs_code(self):
        # Rank 3 fails only after all have spoken: its end stops the others.
        spoken = self.cluster.path("spoken")
        script = f"echo hello from $RANK; touch {spoken}.$RANK; test $RANK = 3 || sleep 100; while ! [ -e {spoken}.0 -a -e {spoken}.1 -a -e {spoken}.2 ]; do sleep 0.01; done; exit 7"
        result = self.cluster.knit_result("run", "-N", "2", "--gpus-per-node", "2", "--grace", "1s", "--", "sh", "-c", script)
        self.assertEqual(result.returncode, 7, result.stderr)
        for rank in range(4):
            self.assertIn(f"hello from {rank}", result.stdout)

    def test_one_failed_rank_stops_the_gang_and_is_named(self):
        # Three ranks ignore SIGTERM, fork and daemonise; one fails. Within the grace period nothing of the gang is left.
        script = (
            "if [ $RANK = 5 ]; then for i in 1 2 3; do echo line $i; done; exit 3; fi; trap '' TERM; "
            "(setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &) ; while :; do sleep 1; done"
        )
        job = self.cluster.submit("-N", "4", "--gpus-per-node", "2", "--grace", "1s", "--", "sh", "-c", script)
        failed = self.cluster.wait_state(job, "failed", timeout=30)
        verdict = failed["verdict"]
        self.assertEqual((verdict["cause"], verdict["rank"], verdict["exit_code"]), ("END_CAUSE_RANK_EXIT", 5, 3))
        self.assertEqual(verdict["last_log_lines"], ["line 1", "line 2", "line 3"])
        self.assertEqual(verdict["node"], failed["attempt"]["placement"]["hosts"][2])
        self.assertEqual(self.cluster.marked(f"KNIT_JOB_ID={job}\0"), [], "processes left")

    def test_cancel_leaves_no_process_and_no_port(self):
        program = self.cluster.path("listener.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(
                "import os, signal, socket, time\n"
                "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                "if os.environ['RANK'] == '0':\n"
                "    server = socket.create_server((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])))\n"
                "    if os.fork() == 0:\n"
                "        os.setsid()\n"
                "    print('listening', flush=True)\n"
                "time.sleep(1000)\n"
            )
        job = self.cluster.submit("-N", "2", "--gpus-per-node", "1", "--grace", "500ms", "--", PYTHON, program)
        running = self.cluster.wait_state(job, "running")
        address = (running["attempt"]["master_address"], running["attempt"]["master_port"])
        wait_for(lambda: self.connects(address), "rank 0's server")
        self.cluster.knit("cancel", str(job))
        self.cluster.wait_state(job, "cancelled", timeout=30)
        self.assertEqual(self.cluster.marked(f"KNIT_JOB_ID={job}\0"), [])
        self.assertFalse(self.connects(address), "the port is still served")

    @staticmethod
    def connects(address):
        try:
            with socket.create_connection(address, timeout=1):
                return True
        except OSError:
            return False

    def test_a_signal_is_told_from_an_exit_code(self):
        job = self.cluster.submit("-N", "1", "--gpus-per-node", "2", "--", "sh", "-c", "test $RANK = 0 && kill -SEGV $$; sleep 100")
        verdict = self.cluster.wait_state(job, "failed")["verdict"]
        self.assertEqual((verdict["cause"], verdict["signal"]), ("END_CAUSE_RANK_SIGNAL", signal.SIGSEGV))

    def test_time_limit(self):
        job = self.cluster.submit("-N", "1", "-t", "0:01", "--grace", "500ms", "--", "sleep", "1000")
        self.assertEqual(self.cluster.wait_state(job, "timed_out", timeout=20)["verdict"]["cause"], "END_CAUSE_TIME_LIMIT")

    def test_restart_policy_starts_the_whole_gang_again_in_place(self):
        marker = self.cluster.path("failed-once")
        script = f"echo attempt $KNIT_ATTEMPT rank $RANK; if [ $RANK = 1 ] && [ $KNIT_ATTEMPT = 1 ]; then touch {marker}; exit 9; fi; test $KNIT_ATTEMPT = 2 || sleep 100"
        job = self.cluster.submit("-N", "2", "--gpus-per-node", "1", "--restart", "gang", "--max-restarts", "2", "--grace", "1s", "--", "sh", "-c", script)
        done = self.cluster.wait_state(job, "completed")
        self.assertEqual(done["restarts"], 1)
        self.assertEqual(done["attempt"]["number"], 2)
        self.assertEqual(done["past_attempts"][0]["verdict"]["exit_code"], 9)
        self.assertHosts(done, done["past_attempts"][0]["placement"]["hosts"])
        self.assertIn("attempt 1 rank 1", self.cluster.knit("logs", str(job), "--attempt", "1"))
        self.assertIn("attempt 2 rank 1", self.cluster.knit("logs", str(job), "--rank", "1"))

    def test_array_and_dependencies(self):
        first = self.cluster.submit("--array", "0-3%2", "--gpus-per-node", "1", "--", "sh", "-c", "echo task $KNIT_ARRAY_TASK_ID")
        after = self.cluster.submit("--dependency", f"afterok:{first}", "--gpus-per-node", "1", "--", "true")
        done = self.cluster.wait_state(after, "completed")
        tasks = [job for job in self.cluster.jobs() if int(job.get("array_job_id", 0)) == first]
        self.assertEqual(sorted(int(job.get("array_task_id", 0)) for job in tasks), [0, 1, 2, 3])
        self.assertEqual({job["state"] for job in tasks}, {"JOB_STATE_COMPLETED"})
        self.assertGreaterEqual(done["start_time"], max(job["end_time"] for job in tasks))
        self.assertIn("task 2", self.cluster.knit("logs", str(first + 2)))

    def test_dependency_on_a_failed_job_ends_the_job_with_that_reason(self):
        bad = self.cluster.submit("--", "false")
        self.cluster.wait_state(bad, "failed")
        job = self.cluster.submit("--dependency", f"afterok:{bad}", "--", "true")
        verdict = self.cluster.wait_state(job, "failed", "cancelled")["verdict"]
        self.assertEqual(verdict["cause"], "END_CAUSE_DEPENDENCY_NEVER_SATISFIED")

    def test_a_host_that_cannot_prepare_is_replaced_before_any_rank_runs(self):
        # h1's spool vanishes under its agent's feet: the gang goes to other hosts and costs no restart.
        spool = self.cluster.path("spool", "h1")
        os.rename(spool, spool + ".away")
        with open(spool, "w", encoding="utf-8"):
            pass
        try:
            job = self.cluster.submit("-N", "2", "--gpus-per-node", "2", "--restart", "gang", "--", "true")
            done = self.cluster.wait_state(job, "completed")
            self.assertNotIn("h1", done["attempt"]["placement"]["hosts"])
            self.assertEqual((done.get("restarts", 0), done["attempt"]["number"]), (0, 1))
        finally:
            os.unlink(spool)
            os.rename(spool + ".away", spool)

    def test_two_gangs_on_one_host_have_two_ports(self):
        jobs = [self.cluster.submit("-N", "1", "-w", "h2", "--gpus-per-node", "1", "--", "sleep", "1000") for _ in range(2)]
        ports = {self.cluster.wait_state(job, "running")["attempt"]["master_port"] for job in jobs}
        self.assertEqual(len(ports), 2)
        self.cluster.knit("cancel", *map(str, jobs))
        for job in jobs:
            self.cluster.wait_state(job, "cancelled")

    def test_two_gangs_that_need_everything_take_turns(self):
        jobs = [self.cluster.submit("-N", "4", "--gpus-per-node", "2", "--", "sh", "-c", "sleep 0.3") for _ in range(3)]
        done = [self.cluster.wait_state(job, "completed") for job in jobs]
        spans = sorted((job["start_time"], job["end_time"]) for job in done)
        for (_, end), (start, _) in zip(spans, spans[1:]):
            self.assertLessEqual(end, start, "two gangs held the same hosts")

    def test_drained_nodes_finish_their_work_and_get_no_more(self):
        job = self.cluster.submit("-N", "1", "-w", "h3", "--gpus-per-node", "2", "--", "sleep", "1000")
        self.cluster.wait_state(job, "running")
        self.cluster.knit("drain", "h3", "--reason", "new fan")
        self.assertEqual(self.cluster.node("h3")["state"], "NODE_STATE_DRAINING")
        waiting = self.cluster.submit("-N", "4", "--gpus-per-node", "2", "--", "true")
        self.cluster.knit("cancel", str(job))
        wait_for(lambda: self.cluster.node("h3")["state"] == "NODE_STATE_DRAINED", "h3 drained")
        pending = self.cluster.job(waiting)
        self.assertEqual(pending["state"], "JOB_STATE_PENDING")
        self.assertRegex(pending["reason"], "drained")
        self.cluster.knit("resume", "h3")
        self.cluster.wait_state(waiting, "completed")

    def test_a_job_that_can_never_fit_is_refused_with_numbers(self):
        result = self.cluster.knit_result("submit", "-N", "5", "--", "true")
        self.assertEqual(result.returncode, 3 if result.returncode == 3 else 2, result.stderr)
        self.assertRegex(result.stderr, r"never fit.*5.*4")
        result = self.cluster.knit_result("submit", "-N", "2", "--require", "podd", "--", "true")
        self.assertRegex(result.stderr, r"constraints\.required_tier.*podd.*rack")


if __name__ == "__main__":
    unittest.main(verbosity=2)
