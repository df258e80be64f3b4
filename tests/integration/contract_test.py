"""The public contract: a client made from the protos alone, with Debian's python3-grpcio, submits and watches a job."""

import os
import subprocess
import sys
import tempfile
import unittest
import uuid

from cluster import ROOT, Cluster, ClusterTestCase

GENERATED = tempfile.TemporaryDirectory(prefix="closeknit-protos-")
PROTOS = [f"closeknit/v1/{name}.proto" for name in ("types", "jobs", "nodes", "topology", "placement", "logs")]
subprocess.run(
    ["protoc", f"-I{ROOT}/proto", f"--python_out={GENERATED.name}", f"--grpc_out={GENERATED.name}", "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin"]
    + [f"{ROOT}/proto/{proto}" for proto in PROTOS + ["google/rpc/status.proto", "google/rpc/error_details.proto"]],
    check=True,
)
sys.path.insert(0, GENERATED.name)
# The generated google/rpc must join the google package that protobuf itself comes with.
import google  # noqa: E402

google.__path__.append(os.path.join(GENERATED.name, "google"))

import grpc  # noqa: E402
from closeknit.v1 import jobs_pb2, jobs_pb2_grpc, logs_pb2, logs_pb2_grpc, nodes_pb2, nodes_pb2_grpc  # noqa: E402
from closeknit.v1 import placement_pb2, placement_pb2_grpc, types_pb2  # noqa: E402
from google.rpc import error_details_pb2, status_pb2  # noqa: E402


class ContractTest(ClusterTestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(racks=1, hosts_per_rack=2, gpus=2)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.channel = grpc.insecure_channel(f"127.0.0.1:{cls.cluster.port}")
        cls.addClassCleanup(cls.channel.close)
        cls.jobs = jobs_pb2_grpc.JobServiceStub(cls.channel)

    def spec(self, **changes):
        spec = types_pb2.JobSpec(name="contract", nodes=2, gpus_per_node=2, command=["sh", "-c", "echo rank $RANK"])
        for field, value in changes.items():
            setattr(spec, field, value)
        return spec

    def test_submit_watch_and_read_logs(self):
        request = jobs_pb2.SubmitJobRequest(spec=self.spec(), request_id=str(uuid.uuid4()), user="ada")
        job_id = self.jobs.SubmitJob(request, timeout=10).job_id
        self.assertEqual(self.jobs.SubmitJob(request, timeout=10).job_id, job_id, "the same request id is the same job")
        states = []
        for update in self.jobs.WatchJobs(jobs_pb2.WatchJobsRequest(job_ids=[job_id]), timeout=60):
            states.append(types_pb2.JobState.Name(update.job.state))
        self.assertEqual(states[-1], "JOB_STATE_COMPLETED", states)
        self.assertEqual(self.jobs.GetJob(jobs_pb2.GetJobRequest(job_id=job_id), timeout=10).user, "ada")
        output = {}
        stub = logs_pb2_grpc.LogServiceStub(self.channel)
        for chunk in stub.StreamLogs(logs_pb2.StreamLogsRequest(job_id=job_id), timeout=30):
            output[chunk.rank] = output.get(chunk.rank, b"") + chunk.data
        self.assertEqual(output, {rank: f"rank {rank}\n".encode() for rank in range(4)})

    def test_pages_of_jobs_cover_all_once(self):
        first = self.jobs.SubmitJob(jobs_pb2.SubmitJobRequest(spec=self.spec(array="0-24", hold=True), user="bob"), timeout=10)
        seen, token = [], ""
        while True:
            page = self.jobs.ListJobs(jobs_pb2.ListJobsRequest(users=["bob"], page_size=10, page_token=token), timeout=10)
            self.assertEqual(page.total_size, 25)
            seen += [job.job_id for job in page.jobs]
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(sorted(seen), list(range(first.job_id, first.job_id + 25)))
        self.assertEqual(len(self.jobs.CancelJob(jobs_pb2.CancelJobRequest(job_ids=[first.job_id]), timeout=10).cancelled_job_ids), 25)

    def test_errors_carry_the_field_in_google_rpc_details(self):
        cases = {
            "spec.nodes": self.spec(nodes=0),
            "spec.command": self.spec(script="#!/bin/sh\n"),
            "spec.working_directory": self.spec(working_directory="relative"),
            "spec.array": self.spec(array="9-0"),
            "spec.time_limit": None,
        }
        cases["spec.time_limit"] = self.spec()
        cases["spec.time_limit"].time_limit.seconds = -1
        for field, spec in cases.items():
            with self.subTest(field), self.assertRaises(grpc.RpcError) as raised:
                self.jobs.SubmitJob(jobs_pb2.SubmitJobRequest(spec=spec), timeout=10)
            error = raised.exception
            self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
            trailer = dict(error.trailing_metadata())["grpc-status-details-bin"]
            status = status_pb2.Status.FromString(trailer)
            detail = error_details_pb2.BadRequest()
            self.assertTrue(any(any_detail.Unpack(detail) for any_detail in status.details))
            self.assertEqual(detail.field_violations[0].field, field)

    def test_unknown_job_is_not_found(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.jobs.GetJob(jobs_pb2.GetJobRequest(job_id=999999), timeout=10)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_nodes_and_plan(self):
        nodes = nodes_pb2_grpc.NodeServiceStub(self.channel).ListNodes(nodes_pb2.ListNodesRequest(), timeout=10).nodes
        self.assertEqual([node.name for node in nodes], ["h1", "h2"])
        stub = placement_pb2_grpc.PlacementServiceStub(self.channel)
        plan = stub.Plan(placement_pb2.PlanRequest(nodes=2, gpus_per_node=2), timeout=10)
        self.assertTrue(plan.feasible and plan.proven_optimal, plan)
        plan = stub.Plan(placement_pb2.PlanRequest(nodes=3, gpus_per_node=2), timeout=10)
        self.assertFalse(plan.feasible)
        self.assertRegex(plan.why, "3")

    def test_health_and_reflection_are_served(self):
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=lambda _: b"", response_deserializer=lambda data: data)
        self.assertEqual(check(None, timeout=10), b"\x08\x01", "SERVING")
        reflect = self.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", request_serializer=lambda data: data, response_deserializer=lambda data: data
        )
        answer = next(reflect(iter([b"\x3a\x00"]), timeout=10))  # list_services: ""
        self.assertIn(b"closeknit.v1.JobService", answer)


if __name__ == "__main__":
    unittest.main(verbosity=2)
