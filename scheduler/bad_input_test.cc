// Bad input to every method: an error that names the field, a daemon that goes on, nothing half-stored.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "scheduler/testing/daemon_under_test.h"

namespace closeknit {
namespace {

class BadInput : public ::testing::Test {
 protected:
  BadInput() { daemon_.Apply(DaemonUnderTest::Description(2, 2, 8)); }

  // The field of the first violation in the error's details; "" if there is none.
  static std::string FieldOf(const grpc::Status& status) {
    google::rpc::Status details;
    if (!details.ParseFromString(status.error_details())) return "";
    google::rpc::BadRequest bad;
    for (const auto& any : details.details()) {
      if (any.UnpackTo(&bad) && bad.field_violations_size() > 0) return bad.field_violations(0).field();
    }
    return "";
  }

  void ExpectRefused(const std::string& method, const google::protobuf::Message& request, const std::string& field) {
    const grpc::Status status = daemon_.Send(method, request.SerializePartialAsString());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method << " " << field << ": " << status.error_message();
    EXPECT_EQ(FieldOf(status), field) << method << ": " << status.error_message();
  }

  uint32_t StoredJobs() {
    grpc::ClientContext context;
    v1::ListJobsResponse response;
    EXPECT_TRUE(daemon_.jobs->ListJobs(&context, v1::ListJobsRequest(), &response).ok());
    return response.total_size();
  }

  DaemonUnderTest daemon_;
};

constexpr char kSubmit[] = "/closeknit.v1.JobService/SubmitJob";

TEST_F(BadInput, OfASubmissionNamesTheField) {
  using Change = std::function<void(v1::JobSpec*)>;
  const std::vector<std::pair<std::string, Change>> cases = {
      {"spec.nodes", [](v1::JobSpec* spec) { spec->set_nodes(0); }},
      {"spec.nodes", [](v1::JobSpec* spec) { spec->set_nodes(1'000'000'000); }},
      {"spec.gpus_per_node", [](v1::JobSpec* spec) { spec->set_gpus_per_node(65); }},
      {"spec.ranks_per_node", [](v1::JobSpec* spec) { spec->set_ranks_per_node(1'000'000'000); }},
      {"spec.command", [](v1::JobSpec* spec) { spec->clear_command(); }},
      {"spec.script",
       [](v1::JobSpec* spec) {
         spec->clear_command();
         spec->set_script("#!/bin/sh\n" + std::string(5 << 20, 'x'));
       }},
      {"spec.name", [](v1::JobSpec* spec) { spec->set_name(std::string(200, 'n')); }},
      {"spec.name", [](v1::JobSpec* spec) { spec->set_name("two\nlines"); }},
      {"spec.priority", [](v1::JobSpec* spec) { spec->set_priority(std::numeric_limits<int32_t>::min()); }},
      {"spec.time_limit", [](v1::JobSpec* spec) { spec->mutable_time_limit()->set_seconds(-1); }},
      {"spec.grace_period", [](v1::JobSpec* spec) { spec->mutable_grace_period()->set_seconds(1'000'000); }},
      {"spec.working_directory", [](v1::JobSpec* spec) { spec->set_working_directory("here"); }},
      {"spec.array", [](v1::JobSpec* spec) { spec->set_array("0-4294967295"); }},
      {"spec.constraints.required_tier", [](v1::JobSpec* spec) { spec->mutable_constraints()->set_required_tier("podd"); }},
      {"spec.constraints.exclude[0]", [](v1::JobSpec* spec) { spec->mutable_constraints()->add_exclude("h[1-"); }},
  };
  for (const auto& [field, change] : cases) {
    v1::SubmitJobRequest request;
    *request.mutable_spec() = daemon_.Spec(1, 1);
    change(request.mutable_spec());
    ExpectRefused(kSubmit, request, field);
  }
  EXPECT_EQ(StoredJobs(), 0u);
  daemon_.Submit(daemon_.Spec(1, 1));
  EXPECT_EQ(StoredJobs(), 1u);
}

TEST_F(BadInput, OfOtherMethodsNamesTheField) {
  v1::ListJobsRequest pages;
  pages.set_page_size(1'000'000);
  ExpectRefused("/closeknit.v1.JobService/ListJobs", pages, "page_size");
  v1::ListJobsRequest token;
  token.set_page_token("soon");
  ExpectRefused("/closeknit.v1.JobService/ListJobs", token, "page_token");
  v1::ListJobsRequest hosts;
  hosts.add_nodes("h[9-1]");
  ExpectRefused("/closeknit.v1.JobService/ListJobs", hosts, "nodes[0]");
  ExpectRefused("/closeknit.v1.JobService/CancelJob", v1::CancelJobRequest(), "job_ids");
  v1::ListNodesRequest domain;
  domain.set_domain("nowhere");
  ExpectRefused("/closeknit.v1.NodeService/ListNodes", domain, "domain");
  v1::ListNodesRequest node_pages;
  node_pages.set_page_token("h99");
  ExpectRefused("/closeknit.v1.NodeService/ListNodes", node_pages, "page_token");
  v1::DrainNodesRequest drain;
  drain.add_nodes("h1");
  ExpectRefused("/closeknit.v1.NodeService/DrainNodes", drain, "reason");
  ExpectRefused("/closeknit.v1.NodeService/ResumeNodes", v1::ResumeNodesRequest(), "nodes");
  ExpectRefused("/closeknit.v1.TopologyService/ApplyTopology", v1::ApplyTopologyRequest(), "description");
  v1::ApplyTopologyRequest topology;
  topology.set_description("SwitchName=r1 Nodes=h[1-2]\nSwitchName=r2 Nodes=h2\n");
  ExpectRefused("/closeknit.v1.TopologyService/ApplyTopology", topology, "description");
  v1::PlanRequest plan;
  ExpectRefused("/closeknit.v1.PlacementService/Plan", plan, "nodes");
  plan.set_nodes(1'000'000'000);
  ExpectRefused("/closeknit.v1.PlacementService/Plan", plan, "nodes");
  v1::PlanRequest tier;
  tier.set_nodes(1);
  tier.mutable_constraints()->set_required_tier("podd");
  ExpectRefused("/closeknit.v1.PlacementService/Plan", tier, "constraints.required_tier");
  v1::PlanRequest evaluate;
  evaluate.add_evaluate_hosts("h[1-2],h77");
  ExpectRefused("/closeknit.v1.PlacementService/Plan", evaluate, "evaluate_hosts[0]");
  daemon_.Submit(daemon_.Spec(1, 1));
  v1::StreamLogsRequest logs;
  logs.set_job_id(1);
  logs.add_ranks(1'000'000'000);
  ExpectRefused("/closeknit.v1.LogService/StreamLogs", logs, "ranks[0]");
}

TEST_F(BadInput, ThatIsNotUtf8NamesTheField) {
  // A wire-format string field that no generated client would send.
  const auto text_field = [](int number, const std::string& value) {
    return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)), std::string(1, static_cast<char>(value.size())), value);
  };
  const std::string bad = "\xff\xfe";
  const std::vector<std::tuple<std::string, std::string, std::string>> cases = {
      {kSubmit, text_field(1, text_field(1, bad)), "spec.name"},
      {kSubmit, text_field(1, text_field(9, text_field(1, "A") + text_field(2, bad))), "spec.environment"},
      {kSubmit, text_field(2, bad), "request_id"},
      {"/closeknit.v1.JobService/ListJobs", text_field(3, bad), "name"},
      {"/closeknit.v1.JobService/CancelJob", text_field(2, bad), "user"},
      {"/closeknit.v1.NodeService/GetNode", text_field(1, bad), "name"},
      {"/closeknit.v1.NodeService/ListNodes", text_field(3, bad), "domain"},
      {"/closeknit.v1.NodeService/WatchNodes", text_field(1, bad), "nodes"},
      {"/closeknit.v1.NodeService/DrainNodes", text_field(2, bad), "reason"},
      {"/closeknit.v1.NodeService/ResumeNodes", text_field(1, bad), "nodes"},
      {"/closeknit.v1.TopologyService/ApplyTopology", text_field(1, bad), "description"},
      {"/closeknit.v1.PlacementService/Plan", text_field(7, bad), "evaluate_hosts"},
  };
  for (const auto& [method, bytes, field] : cases) {
    const grpc::Status status = daemon_.Send(method, bytes);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method << ": " << status.error_message();
    EXPECT_EQ(FieldOf(status), field) << method;
  }
  EXPECT_EQ(StoredJobs(), 0u);
}

TEST_F(BadInput, ThatIsNoMessageIsRefusedByEveryMethod) {
  const char* const methods[] = {
      "JobService/SubmitJob",        "JobService/GetJob",       "JobService/ListJobs",   "JobService/CancelJob",
      "JobService/WatchJobs",        "NodeService/GetNode",     "NodeService/ListNodes", "NodeService/WatchNodes",
      "NodeService/DrainNodes",      "NodeService/ResumeNodes", "LogService/StreamLogs", "TopologyService/ApplyTopology",
      "TopologyService/GetTopology", "PlacementService/Plan",
  };
  for (const char* method : methods) {
    const grpc::Status status = daemon_.Send(absl::StrCat("/closeknit.v1.", method), "\x0a\xff\xff\xff");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method << ": " << status.error_message();
  }
}

TEST_F(BadInput, UnknownThingsAreNotFound) {
  v1::GetJobRequest job;
  job.set_job_id(4711);
  EXPECT_EQ(daemon_.Send("/closeknit.v1.JobService/GetJob", job.SerializeAsString()).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::WatchJobsRequest watch;
  watch.add_job_ids(4711);
  EXPECT_EQ(daemon_.Send("/closeknit.v1.JobService/WatchJobs", watch.SerializeAsString()).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::GetNodeRequest node;
  node.set_name("h77");
  EXPECT_EQ(daemon_.Send("/closeknit.v1.NodeService/GetNode", node.SerializeAsString()).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::StreamLogsRequest logs;
  logs.set_job_id(4711);
  EXPECT_EQ(daemon_.Send("/closeknit.v1.LogService/StreamLogs", logs.SerializeAsString()).error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace closeknit
