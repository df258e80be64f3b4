// Runs the transcripts in testdata/*.txt: what happens, and what the core wants done about it.
//
//   # comment
//   submit nodes=2 gpus=8
//   deliver h[1-2]
//   ----
//   store job 1: ...            the effects, up to the next empty line
//
// The invariants are checked after every command. CLOSEKNIT_REWRITE=1 writes the effects at hand into the files: read the diff.
// Shown are records, replies and commands to agents; "show nodes", "show notices" add what changes there.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster_model/test_cluster.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/host_list.h"
#include "proto/base/proto_time.h"
#include "scheduler/core/testing/harness.h"
#include "scheduler/core/testing/print.h"

namespace closeknit {
namespace {

using Words = std::vector<std::string>;

absl::Duration ParseDuration(const std::string& text) {
  absl::Duration duration;
  CHECK(absl::ParseDuration(text, &duration)) << "no duration: " << text;
  return duration;
}

uint64_t ParseNumber(absl::string_view text) {
  uint64_t number = 0;
  CHECK(absl::SimpleAtoi(text, &number)) << "no number: " << std::string(text);
  return number;
}

v1::Dependency ParseDependency(const std::string& text) {
  const std::pair<std::string, std::string> type_job = absl::StrSplit(text, ':');
  v1::Dependency dependency;
  dependency.set_job_id(ParseNumber(type_job.second));
  dependency.set_type(type_job.first == "afterok"      ? v1::DEPENDENCY_TYPE_AFTER_OK
                      : type_job.first == "afternotok" ? v1::DEPENDENCY_TYPE_AFTER_NOT_OK
                      : type_job.first == "afterany"   ? v1::DEPENDENCY_TYPE_AFTER_ANY
                                                       : v1::DEPENDENCY_TYPE_AFTER);
  return dependency;
}

// "nodes=2 gpus=8 restart=1 ..."
v1::SubmitJobRequest ParseSubmit(const Words& words) {
  v1::SubmitJobRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  request.set_user("ada");
  spec.add_command("train");
  spec.set_nodes(1);
  for (const std::string& word : words) {
    const std::pair<std::string, std::string> key_value = absl::StrSplit(word, absl::MaxSplits('=', 1));
    const auto& [key, value] = key_value;
    if (key == "nodes")
      spec.set_nodes(ParseNumber(value));
    else if (key == "gpus")
      spec.set_gpus_per_node(ParseNumber(value));
    else if (key == "ranks")
      spec.set_ranks_per_node(ParseNumber(value));
    else if (key == "priority")
      spec.set_priority(static_cast<int32_t>(ParseNumber(value)));
    else if (key == "array")
      spec.set_array(value);
    else if (key == "id")
      request.set_request_id(value);
    else if (key == "user")
      request.set_user(value);
    else if (key == "after")
      *spec.add_dependencies() = ParseDependency(value);
    else if (key == "limit")
      *spec.mutable_time_limit() = ToProtoDuration(ParseDuration(value));
    else if (key == "grace")
      *spec.mutable_grace_period() = ToProtoDuration(ParseDuration(value));
    else if (key == "require")
      spec.mutable_constraints()->set_required_tier(value);
    else if (key == "hold")
      spec.set_hold(true);
    else if (key == "hold_until_fits")
      spec.set_hold_until_fits(true);
    else if (key == "restart") {
      spec.mutable_restart()->set_mode(v1::RESTART_MODE_GANG);
      spec.mutable_restart()->set_max_restarts(ParseNumber(value));
    } else
      CHECK(false) << "no such key: " << key;
  }
  return request;
}

class Transcript {
 public:
  Transcript() : harness_(Config()) {}

  // The effects of one command.
  std::string Run(const std::string& line) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const Words arguments(words.begin() + 1, words.end());
    std::string out = Dispatch(words[0], arguments);
    const absl::Status invariants = harness_.core()->CheckInvariants();
    if (!invariants.ok()) absl::StrAppend(&out, "BROKEN: ", std::string(invariants.message()), "\n");
    for (const auto& [name, agent] : harness_.agents()) {
      for (size_t i = violations_[name]; i < agent->violations().size(); ++i)
        absl::StrAppend(&out, "VIOLATION: ", agent->violations()[i], "\n");
      violations_[name] = agent->violations().size();
    }
    return out;
  }

 private:
  static CoreConfig Config() {
    CoreConfig config;
    config.max_ended_jobs = 20;
    config.max_pending_jobs = 50;
    return config;
  }

  std::string Dispatch(const std::string& command, const Words& a) {
    if (command == "show") return shown_.insert(a[0]), "";
    if (command == "topology") return Step({Topology(absl::StrJoin(a, " "), false)});
    if (command == "topology-dry-run") return Step({Topology(absl::StrJoin(a, " "), true)});
    if (command == "connect") return Each(a[0], [&](const std::string& host) { return harness_.Connect(host); });
    if (command == "disconnect") return Each(a[0], [&](const std::string& host) { return harness_.Disconnect(host, "silent for 3s"); });
    if (command == "submit") return Step({SubmitJob{1, ParseSubmit(a)}});
    if (command == "cancel") return Step({Cancel(a)});
    if (command == "drain") return Step({Drain(a)});
    if (command == "resume") return Step({Resume(a)});
    if (command == "advance") return harness_.Advance(ParseDuration(a[0])), Step({});
    if (command == "take") return Take(a[0]), "";
    if (command == "deliver") return Take(a[0]), Step(harness_.TakeReports());
    if (command == "settle") return Settle();
    if (command == "restart") return Restart();
    if (command == "jobs") return Jobs();
    if (command == "nodes") return Nodes();
    return OnHosts(command, a);
  }

  // What happens on hosts: "exit h1 JOB RANK CODE", "signal h1 JOB RANK SIGNAL", ...
  std::string OnHosts(const std::string& command, const Words& a) {
    std::vector<Event> events;
    for (const std::string& host : Hosts(a[0])) {
      FakeAgent& agent = harness_.agent(host);
      const auto say = [&](const std::optional<v1::AgentMessage>& message) {
        if (message.has_value()) harness_.Say(host, *message);
      };
      if (command == "exit")
        say(agent.ExitRank(Live(agent, a[1]), ParseNumber(a[2]), static_cast<int>(ParseNumber(a[3])), 0, harness_.now()));
      else if (command == "signal")
        say(agent.ExitRank(Live(agent, a[1]), ParseNumber(a[2]), 0, static_cast<int>(ParseNumber(a[3])), harness_.now()));
      else if (command == "finish")
        Finish(agent, a[1]);
      else if (command == "lose-supervisor")
        say(agent.LoseSupervisor(Live(agent, a[1]), harness_.now()));
      else if (command == "reboot")
        agent.Reboot();
      else if (command == "refuse")
        agent.set_refusal(Refusal(a));
      else if (command == "accept")
        agent.set_refusal(std::nullopt);
      else if (command == "stubborn")
        agent.SetStubborn(true, harness_.now());
      else if (command == "relent")
        for (const v1::AgentMessage& message : agent.SetStubborn(false, harness_.now())) harness_.Say(host, message);
      else if (command == "gpus")
        harness_.Say(host, Gpus(agent, static_cast<int>(ParseNumber(a[1]))));
      else
        CHECK(false) << "no such command: " << command;
    }
    return Step(harness_.TakeReports());
  }

  static v1::AgentMessage Gpus(FakeAgent& agent, int gpus) {
    agent.set_gpus(gpus);
    v1::AgentMessage message;
    *message.mutable_host()->mutable_gpus() = agent.Hello().gpus();
    return message;
  }

  void Finish(FakeAgent& agent, const std::string& job) {
    const FakeAgent::Key key = Live(agent, job);
    const FakeAgent::Slot slot = agent.slots().at(key);
    for (uint32_t rank = slot.first_rank; rank < slot.first_rank + slot.ranks; ++rank) {
      const auto report = agent.ExitRank(key, rank, 0, 0, harness_.now());
      if (report.has_value()) harness_.Say(agent.name(), *report);
    }
  }

  static std::optional<v1::SlotRejected> Refusal(const Words& a) {
    v1::SlotRejected refusal;
    refusal.set_reason_code(a[1]);
    refusal.set_message("as told");
    refusal.set_host_fault(a[2] == "host");
    return refusal;
  }

  static FakeAgent::Key Live(const FakeAgent& agent, const std::string& job) {
    FakeAgent::Key live;
    for (const auto& [key, slot] : agent.slots()) {
      if (key.job == ParseNumber(job)) live = key;
    }
    return live;
  }

  Event Topology(const std::string& shape, bool dry_run) {
    Event event = harness_.Topology(shape, Cluster(shape).shared_fabric());
    std::get<ApplyTopology>(event).request.set_dry_run(dry_run);
    return event;
  }

  static Event Cancel(const Words& a) {
    CancelJobs event{1, {}};
    for (const absl::string_view id : absl::StrSplit(a[0], ',')) event.request.add_job_ids(ParseNumber(id));
    event.request.set_user("ada");
    return event;
  }

  static Event Drain(const Words& a) {
    DrainNodes event{1, {}};
    event.request.add_nodes(a[0]);
    event.request.set_reason(absl::StrJoin(Words(a.begin() + 1, a.end()), " "));
    event.request.set_user("op");
    return event;
  }

  static Event Resume(const Words& a) {
    ResumeNodes event{1, {}};
    event.request.add_nodes(a[0]);
    return event;
  }

  static std::vector<std::string> Hosts(const std::string& list) {
    absl::StatusOr<std::vector<std::string>> hosts = ExpandHostList(list);
    CHECK_OK(hosts.status());
    return *std::move(hosts);
  }

  void Take(const std::string& list) {
    for (const std::string& host : Hosts(list)) {
      while (harness_.Deliver(host)) {
      }
    }
  }

  template <typename Make>
  std::string Each(const std::string& list, Make make) {
    std::vector<Event> events;
    for (const std::string& host : Hosts(list)) events.push_back(make(host));
    return Step(std::move(events));
  }

  std::string Step(std::vector<Event> events) {
    // Streams that this step closes are still named by it.
    for (const Event& event : events) {
      if (const auto* connected = std::get_if<AgentConnected>(&event)) agent_of_[connected->session] = connected->hello.node();
    }
    return Shown(harness_.Step(std::move(events)));
  }

  std::string Settle() {
    std::string out;
    harness_.Settle([&](const Effects& effects) { absl::StrAppend(&out, Shown(effects)); });
    return out;
  }

  std::string Restart() { return Shown(harness_.Restart()); }

  std::string Jobs() const {
    std::string out;
    for (const auto& [id, job] : harness_.published_jobs()) {
      const int position = const_cast<Harness&>(harness_).core()->QueuePosition(id);
      absl::StrAppend(&out, PrintJob(*job), position > 0 ? absl::StrCat(" position ", position) : "", "\n");
    }
    return out;
  }

  std::string Nodes() const {
    std::string out;
    for (const auto& [name, node] : harness_.published_nodes()) absl::StrAppend(&out, PrintNode(*node), "\n");
    return out;
  }

  std::string Shown(const Effects& effects) {
    std::string out;
    const auto agent = [&](SessionId session) {
      return agent_of_.contains(session) ? agent_of_.at(session) : absl::StrCat("session ", session);
    };
    for (const absl::string_view line : absl::StrSplit(Print(effects, agent), '\n', absl::SkipEmpty())) {
      if (absl::StartsWith(line, "node ") && !shown_.contains("nodes")) continue;
      if (absl::StartsWith(line, "store nodes") && !shown_.contains("nodes")) continue;
      if (absl::StartsWith(line, "notice") && !shown_.contains("notices")) continue;
      if (absl::StrContains(line, ": WELCOME") && !shown_.contains("welcome")) continue;
      absl::StrAppend(&out, line, "\n");
    }
    return out;
  }

  Harness harness_;
  std::set<std::string> shown_;
  std::map<SessionId, std::string> agent_of_;
  std::map<std::string, size_t> violations_;
};

class TranscriptTest : public testing::TestWithParam<std::string> {};

// The file as it is, with the effects as they come out.
std::string Replay(std::istream& in) {
  Transcript transcript;
  std::string out, line;
  std::vector<std::string> commands;
  while (std::getline(in, line)) {
    if (line == "----") {
      std::string effects;
      for (const std::string& command : commands) absl::StrAppend(&effects, transcript.Run(command));
      commands.clear();
      absl::StrAppend(&out, "----\n", effects, "\n");
      while (std::getline(in, line) && !line.empty()) {
      }
      continue;
    }
    absl::StrAppend(&out, line, "\n");
    if (!line.empty() && line[0] != '#') commands.push_back(line);
  }
  return out;
}

TEST_P(TranscriptTest, Replays) {
  const std::string path = absl::StrCat(CORE_TESTDATA, "/", GetParam(), ".txt");
  std::ifstream file(path);
  std::stringstream expected;
  expected << file.rdbuf();
  const std::string actual = Replay(expected);
  EXPECT_FALSE(absl::StrContains(actual, "BROKEN:") || absl::StrContains(actual, "VIOLATION:")) << actual;
  if (std::getenv("CLOSEKNIT_REWRITE") != nullptr) {
    std::ofstream(path) << actual;
    return;
  }
  EXPECT_EQ(actual, expected.str()) << "if the change is meant: CLOSEKNIT_REWRITE=1, and read the diff of " << path;
}

std::vector<std::string> Transcripts() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(CORE_TESTDATA)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Core, TranscriptTest, testing::ValuesIn(Transcripts()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace closeknit
