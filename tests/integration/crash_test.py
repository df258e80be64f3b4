"""kill -9 of each daemon under load: nothing acknowledged is lost, nothing runs twice, no rank notices."""

import concurrent.futures
import os
import signal
import unittest

from cluster import Cluster, ClusterTestCase, alive, wait_for

# Every rank writes its pid at its start, and a numbered line now and then until it is told to end by a file.
RANK = """
echo $$ >> {dir}/pids.$KNIT_JOB_ID.$RANK
i=0
while [ ! -e {dir}/end ] && [ $i -lt 6000 ]; do echo line $i; i=$((i + 1)); sleep 0.02; done
echo $i > {dir}/lines.$KNIT_JOB_ID.$RANK
"""


class CrashTest(ClusterTestCase):
    def setUp(self):
        self.cluster = self.enter(Cluster(racks=2, hosts_per_rack=2, gpus=2))

    def start_gang(self, *args):
        job = self.cluster.submit("-N", "4", "--gpus-per-node", "2", *args, "--", "sh", "-c", RANK.format(dir=self.cluster.dir))
        self.cluster.wait_state(job, "running")
        wait_for(lambda: all(os.path.exists(self.cluster.path(f"pids.{job}.{rank}")) for rank in range(8)), "eight ranks")
        return job

    def pids(self, job):
        """rank -> pids of every process that ever was this rank."""
        pids = {}
        for rank in range(8):
            with open(self.cluster.path(f"pids.{job}.{rank}"), encoding="ascii") as file:
                pids[rank] = [int(line) for line in file]
        return pids

    def end_ranks(self):
        with open(self.cluster.path("end"), "w", encoding="ascii"):
            pass

    def check_logs(self, job):
        """Each rank's log holds each of its lines once, in order."""
        for rank in range(8):
            with open(self.cluster.path(f"lines.{job}.{rank}"), encoding="ascii") as file:
                count = int(file.read())
            logged = self.cluster.knit("logs", str(job), "--rank", str(rank)).splitlines()
            self.assertEqual(logged, [f"line {i}" for i in range(count)], f"rank {rank}")

    def test_scheduler_killed_while_a_gang_runs_and_a_thousand_jobs_wait(self):
        job = self.start_gang()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            futures = [
                pool.submit(self.cluster.submit, "--array", "0-249", "--gpus-per-node", "2", "--request-id", f"r{i}", "--", "true") for i in range(4)
            ]
            acknowledged = [future.result() for future in futures]
        before = {entry["job_id"]: entry["spec"]["name"] for entry in self.cluster.jobs()}
        self.assertEqual(len(before), 1001)
        pids = self.pids(job)
        self.cluster.kill("knitd")
        for rank in range(8):
            self.assertTrue(alive(pids[rank][0]), f"rank {rank} died with the scheduler")
        self.cluster.start_knitd()
        self.cluster.wait_nodes(4, "allocated")
        after = {entry["job_id"]: entry["spec"]["name"] for entry in self.cluster.jobs()}
        self.assertEqual(after, before, "the same jobs under the same ids")
        # The same request ids give the same jobs, not new ones.
        for i, first in enumerate(acknowledged):
            again = self.cluster.submit("--array", "0-249", "--gpus-per-node", "2", "--request-id", f"r{i}", "--", "true")
            self.assertEqual(again, first)
        self.assertEqual(self.pids(job), pids, "no rank was started again")
        self.assertEqual(self.cluster.job(job)["state"], "JOB_STATE_RUNNING")
        self.end_ranks()
        done = self.cluster.wait_state(job, "completed")
        self.assertEqual(done["attempt"]["number"], 1)
        self.check_logs(job)
        for first in acknowledged:
            self.cluster.wait_state(first + 249, "completed", timeout=240)

    def test_agent_killed_ranks_go_on_and_the_verdict_arrives_later(self):
        job = self.start_gang()
        pids = self.pids(job)
        self.cluster.kill("h2")
        wait_for(lambda: self.cluster.node("h2")["state"] == "NODE_STATE_DOWN", "h2 down")
        self.assertEqual(self.cluster.job(job)["state"], "JOB_STATE_RUNNING")
        self.end_ranks()  # the ranks of h2 end while nobody watches
        wait_for(lambda: not any(alive(pid[0]) for pid in pids.values()), "ranks' end")
        self.cluster.start_agent("h2")
        done = self.cluster.wait_state(job, "completed")
        self.assertEqual(self.pids(job), pids)
        self.assertEqual(done["attempt"]["number"], 1)
        self.check_logs(job)

    def test_agent_restarts_under_a_running_gang(self):
        job = self.start_gang()
        pids = self.pids(job)
        for _ in range(3):
            self.cluster.kill("h3")
            self.cluster.start_agent("h3")
            self.cluster.wait_nodes(4, "allocated")
        self.end_ranks()
        self.cluster.wait_state(job, "completed")
        self.assertEqual(self.pids(job), pids)
        self.check_logs(job)

    def test_agent_killed_while_its_job_is_cancelled(self):
        job = self.start_gang()
        self.cluster.kill("h1")
        self.cluster.knit("cancel", str(job))
        wait_for(lambda: "h1" in self.cluster.job(job).get("reason", "") or self.cluster.job(job)["state"] == "JOB_STATE_STOPPING", "the stop")
        self.assertEqual(self.cluster.job(job)["state"], "JOB_STATE_STOPPING", "a silent host frees nothing")
        self.cluster.start_agent("h1")
        self.cluster.wait_state(job, "cancelled")
        self.assertEqual(self.cluster.marked(f"KNIT_JOB_ID={job}\0"), [])

    def shim_dies(self, *policy):
        job = self.start_gang(*policy)
        pids = self.pids(job)
        victim = self.cluster.shims("h4")
        self.assertEqual(len(victim), 1)
        os.kill(victim[0], signal.SIGKILL)
        return job, pids

    def test_supervisor_killed_ends_its_ranks_and_the_gang(self):
        job, pids = self.shim_dies()
        verdict = self.cluster.wait_state(job, "failed")["verdict"]
        self.assertEqual((verdict["cause"], verdict["node"]), ("END_CAUSE_SUPERVISOR_LOST", "h4"))
        wait_for(lambda: not any(alive(pid[0]) for pid in pids.values()), "the end of all ranks")
        self.assertEqual(self.cluster.marked(f"KNIT_JOB_ID={job}\0"), [])

    def test_supervisor_killed_restarts_the_gang_where_its_policy_says_so(self):
        job, pids = self.shim_dies("--restart", "gang")
        wait_for(lambda: self.cluster.job(job)["attempt"]["number"] == 2, "the second attempt")
        self.cluster.wait_state(job, "running")
        wait_for(lambda: all(len(started) == 2 for started in self.pids(job).values()), "each rank started twice")
        self.assertFalse(any(alive(pid[0]) for pid in pids.values()), "a rank of the first attempt still runs")
        self.end_ranks()
        self.assertEqual(self.cluster.wait_state(job, "completed")["restarts"], 1)

    def test_everything_killed_at_once(self):
        job = self.start_gang()
        pids = self.pids(job)
        for name in ["knitd", *self.cluster.hosts]:
            self.cluster.processes[name].kill()
        for name in ["knitd", *self.cluster.hosts]:
            self.cluster.processes[name].wait()
        self.cluster.start_knitd()
        for host in self.cluster.hosts:
            self.cluster.start_agent(host)
        self.cluster.wait_nodes(4, "allocated")
        self.assertEqual(self.pids(job), pids)
        self.end_ranks()
        self.cluster.wait_state(job, "completed")
        self.check_logs(job)


class TopologyChangeTest(ClusterTestCase):
    def test_a_running_hosts_removal_while_the_scheduler_is_down_kills_nothing(self):
        with Cluster(racks=2, hosts_per_rack=2, gpus=2) as cluster:
            job = cluster.submit("-N", "4", "--gpus-per-node", "2", "--", "sleep", "1000")
            cluster.wait_state(job, "running")
            cluster.kill("knitd")
            cluster.hosts_per_rack = 1  # h3 and h4 change racks or vanish
            cluster.write_topology()
            cluster.start_knitd(wait=False)
            # Refused as a whole or reported with the job: in neither case does a rank die.
            wait_for(lambda: os.path.exists(cluster.path("port")) or cluster.processes["knitd"].poll() is not None, "knitd's answer")
            self.assertEqual(len(cluster.marked(f"KNIT_JOB_ID={job}\0")), 8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
