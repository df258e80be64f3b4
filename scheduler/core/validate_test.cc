#include "scheduler/core/validate.h"

#include <functional>

#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "proto/base/errors.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/array_spec.h"

namespace closeknit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::SubmitJobRequest Good() {
  v1::SubmitJobRequest request;
  request.set_user("ada");
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_nodes(2);
  spec.set_gpus_per_node(8);
  spec.add_command("python3");
  spec.add_command("train.py");
  return request;
}

// The field that the error's BadRequest names.
std::string Field(const absl::Status& status) {
  const google::rpc::Status rpc = ToRpcStatus(status);
  google::rpc::BadRequest detail;
  if (rpc.details_size() != 1 || !rpc.details(0).UnpackTo(&detail) || detail.field_violations_size() != 1) return "?";
  return detail.field_violations(0).field();
}

TEST(ValidateSubmit, AcceptsWhatPeopleSubmit) {
  EXPECT_TRUE(ValidateSubmit(Good()).ok());
  v1::SubmitJobRequest request = Good();
  v1::JobSpec& spec = *request.mutable_spec();
  spec.clear_command();
  spec.set_script("#!/bin/sh\necho \x1b[1mbold\x1b[0m\r\n");  // control characters are a script's own business
  spec.set_name("Schrödinger 7B");
  spec.set_working_directory("/home/ada");
  (*spec.mutable_environment())["NCCL_DEBUG"] = "INFO";
  *spec.mutable_time_limit() = ToProtoDuration(absl::Hours(24 * 30));
  *spec.mutable_grace_period() = ToProtoDuration(absl::ZeroDuration());
  spec.set_priority(-kMaxPriority);
  spec.set_ranks_per_node(4);
  EXPECT_TRUE(ValidateSubmit(request).ok()) << ValidateSubmit(request);
}

struct Refusal {
  std::string field;
  std::string says;  // part of the message
  std::function<void(v1::SubmitJobRequest*, v1::JobSpec*)> spoil;
};

class RefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusalTest, NamesTheFieldAndWhatWouldBeAccepted) {
  v1::SubmitJobRequest request = Good();
  GetParam().spoil(&request, request.mutable_spec());
  const absl::Status status = ValidateSubmit(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(Field(status), GetParam().field) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().says));
}

using Request = v1::SubmitJobRequest*;
using Spec = v1::JobSpec*;

const Refusal kRefusals[] = {
    {"spec", "missing", [](Request r, Spec) { r->clear_spec(); }},
    {"user", "empty", [](Request r, Spec) { r->clear_user(); }},
    {"user", "control", [](Request r, Spec) { r->set_user("a\nb"); }},
    {"request_id", "at most 128", [](Request r, Spec) { r->set_request_id(std::string(129, 'x')); }},
    {"spec.name", "not UTF-8 at byte 2", [](Request, Spec s) { s->set_name("a\xff"); }},
    {"spec.name", "control", [](Request, Spec s) { s->set_name("two\nlines"); }},
    {"spec.name", "at most 128", [](Request, Spec s) { s->set_name(std::string(129, 'n')); }},
    {"spec.partition", "control", [](Request, Spec s) { s->set_partition(std::string("a\0b", 3)); }},
    {"spec.priority", "-1000000..1000000", [](Request, Spec s) { s->set_priority(kMaxPriority + 1); }},
    {"spec.comment", "at most 1024", [](Request, Spec s) { s->set_comment(std::string(1025, 'c')); }},
    {"spec.nodes", "1..50000", [](Request, Spec s) { s->set_nodes(0); }},
    {"spec.nodes", "1..50000", [](Request, Spec s) { s->set_nodes(4'294'967'295); }},
    {"spec.gpus_per_node", "0..64", [](Request, Spec s) { s->set_gpus_per_node(65); }},
    {"spec.spares", "0..50000", [](Request, Spec s) { s->set_spares(1'000'000'000); }},
    {"spec.ranks_per_node", "at most one rank a GPU", [](Request, Spec s) { s->set_ranks_per_node(9); }},
    {"spec.ranks_per_node", "divisors of 8", [](Request, Spec s) { s->set_ranks_per_node(3); }},
    {"spec.ranks_per_node", "0..1024",
     [](Request, Spec s) {
       s->set_gpus_per_node(0);
       s->set_ranks_per_node(1'000'000'000);
     }},
    {"spec.command", "exactly one", [](Request, Spec s) { s->clear_command(); }},
    {"spec.command", "exactly one", [](Request, Spec s) { s->set_script("#!/bin/sh\n"); }},
    {"spec.command[0]", "empty", [](Request, Spec s) { s->set_command(0, ""); }},
    {"spec.command[1]", "control character 0x00", [](Request, Spec s) { s->set_command(1, std::string("a\0b", 3)); }},
    {"spec.command", "at most",
     [](Request, Spec s) {
       for (int i = 0; i < 3; ++i) s->add_command(std::string(400'000, 'x'));
     }},
    {"spec.script", "at most 1048576",
     [](Request, Spec s) {
       s->clear_command();
       s->set_script("#!/bin/sh\n" + std::string(5'000'000, 'x'));
     }},
    {"spec.script", "#!",
     [](Request, Spec s) {
       s->clear_command();
       s->set_script("echo");
     }},
    {"spec.script", "not UTF-8",
     [](Request, Spec s) {
       s->clear_command();
       s->set_script("#!/bin/sh\n\xc3\x28");
     }},
    {"spec.script", "for 50000 hosts",
     [](Request, Spec s) {
       s->clear_command();
       s->set_script("#!/bin/sh\n" + std::string(100'000, 'x'));
       s->set_nodes(50'000);
     }},
    {"spec.environment", "name", [](Request, Spec s) { (*s->mutable_environment())["1A"] = "x"; }},
    {"spec.environment", "name", [](Request, Spec s) { (*s->mutable_environment())[""] = "x"; }},
    {"spec.environment", "name", [](Request, Spec s) { (*s->mutable_environment())["A=B"] = "x"; }},
    {"spec.environment[RANK]", "reserved", [](Request, Spec s) { (*s->mutable_environment())["RANK"] = "0"; }},
    {"spec.environment[KNIT_JOB_ID]", "reserved", [](Request, Spec s) { (*s->mutable_environment())["KNIT_JOB_ID"] = "0"; }},
    {"spec.environment[TORCHELASTIC_RUN_ID]", "reserved",
     [](Request, Spec s) { (*s->mutable_environment())["TORCHELASTIC_RUN_ID"] = "0"; }},
    {"spec.environment[A]", "at most", [](Request, Spec s) { (*s->mutable_environment())["A"] = std::string(200'000, 'x'); }},
    {"spec.working_directory", "absolute", [](Request, Spec s) { s->set_working_directory("home"); }},
    {"spec.time_limit", "out of range", [](Request, Spec s) { s->mutable_time_limit()->set_seconds(-1); }},
    {"spec.time_limit", "out of range", [](Request, Spec s) { s->mutable_time_limit(); }},
    {"spec.time_limit", "out of range", [](Request, Spec s) { s->mutable_time_limit()->set_seconds(INT64_MAX); }},
    {"spec.time_limit", "out of range", [](Request, Spec s) { s->mutable_time_limit()->set_nanos(2'000'000'000); }},
    {"spec.grace_period", "0..1h", [](Request, Spec s) { s->mutable_grace_period()->set_seconds(3'601); }},
    {"spec.entry", "unknown", [](Request, Spec s) { s->set_entry(static_cast<v1::EntryMode>(77)); }},
    {"spec.restart.mode", "unknown", [](Request, Spec s) { s->mutable_restart()->set_mode(static_cast<v1::RestartMode>(77)); }},
    {"spec.restart.max_restarts", "0..1000", [](Request, Spec s) { s->mutable_restart()->set_max_restarts(1'001); }},
    {"spec.constraints.objective", "unknown",
     [](Request, Spec s) { s->mutable_constraints()->set_objective(static_cast<v1::Objective>(9)); }},
    {"spec.dependencies[0].type", "AFTER_OK", [](Request, Spec s) { s->add_dependencies()->set_job_id(1); }},
    {"spec.dependencies[0].job_id", "no job", [](Request, Spec s) { s->add_dependencies()->set_type(v1::DEPENDENCY_TYPE_AFTER); }},
    {"spec.dependencies", "at most 256",
     [](Request, Spec s) {
       for (int i = 0; i < 257; ++i) s->add_dependencies()->set_job_id(1);
     }},
};

INSTANTIATE_TEST_SUITE_P(ValidateSubmit, RefusalTest, testing::ValuesIn(kRefusals));

TEST(Normalized, LeavesAgentsAndReadersNoDefaultToKnow) {
  v1::SubmitJobRequest request = Good();
  request.mutable_spec()->set_command(0, "/usr/bin/python3");
  request.mutable_spec()->mutable_restart()->set_mode(v1::RESTART_MODE_GANG);
  const v1::JobSpec spec = Normalized(request.spec());
  EXPECT_EQ(spec.name(), "python3");
  EXPECT_EQ(spec.partition(), "default");
  EXPECT_EQ(spec.ranks_per_node(), 8u);
  EXPECT_EQ(spec.working_directory(), "/");
  EXPECT_EQ(spec.entry(), v1::ENTRY_MODE_PER_RANK);
  EXPECT_EQ(spec.grace_period().seconds(), 30);
  EXPECT_EQ(spec.restart().max_restarts(), kDefaultRestarts);
}

TEST(ParseArraySpec, ReadsWhatSbatchReads) {
  EXPECT_THAT(ParseArraySpec("0-3", 10)->tasks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ParseArraySpec("7,1,3-5", 10)->tasks, ElementsAre(1, 3, 4, 5, 7));
  EXPECT_THAT(ParseArraySpec("0-10:5", 10)->tasks, ElementsAre(0, 5, 10));
  EXPECT_THAT(ParseArraySpec("4000000000", 10)->tasks, ElementsAre(4'000'000'000));
  EXPECT_EQ(ParseArraySpec("0-9%4", 10)->at_once, 4);
  EXPECT_EQ(ParseArraySpec("0-9", 10)->at_once, 0);
}

TEST(ParseArraySpec, RefusesTheRestAndNamesTheField) {
  for (const char* text : {"",
                           ",",
                           "1,",
                           "-1",
                           "1-",
                           "3-1",
                           "1-2-3",
                           "1:2",
                           "0-4:0",
                           "a",
                           "1 2",
                           "0-10",
                           "1,1",
                           "1%",
                           "1%0",
                           "1%-1",
                           "1%2%3",
                           "4000000001",
                           "99999999999999999999",
                           "0-4294967295"}) {
    const auto array = ParseArraySpec(text, 10);
    ASSERT_FALSE(array.ok()) << text;
    EXPECT_EQ(Field(array.status()), "array") << text;
  }
}

}  // namespace
}  // namespace closeknit
