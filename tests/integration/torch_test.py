"""A real PyTorch job: eight gloo ranks on four hosts in two racks."""

import unittest

from cluster import PYTHON, ROOT, Cluster, ClusterTestCase


class TorchTest(ClusterTestCase):
    def test_eight_ranks_all_reduce(self):
        with Cluster(racks=2, hosts_per_rack=2, gpus=2) as cluster:
            program = f"{ROOT}/deploy/examples/allreduce.py"
            result = cluster.knit_result("run", "-N", "4", "--gpus-per-node", "2", "--parallelism", "dp=8", "--", PYTHON, program, timeout=180)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertEqual(result.stdout.count("sum = 36, as expected"), 8, result.stdout)
            hosts = cluster.jobs()[0]["attempt"]["placement"]["hosts"]
            self.assertIn(hosts, (["h1", "h2", "h3", "h4"], ["h3", "h4", "h1", "h2"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
