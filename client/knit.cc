// knit: submit gangs, look at them, and run the cluster they live on. Declares the commands and flags; what they do is in commands.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>

#include "client/commands.h"
#include "client/completion.h"
#include "client/suggest.h"

namespace closeknit {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 failed; 2 bad input; 3 cannot fit; 4 not found; 5 scheduler unreachable.\n"
    "`knit run` exits with the job's code: that of the first failed rank, 128 + signal, 124 for its time limit, 130 when cancelled.";

class Program {
 public:
  Program() : app_("Closeknit: gangs of ranks, placed where the network is short", "knit") {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", std::string("knit ") + CLOSEKNIT_VERSION);
    app_.footer(std::string(kExitCodes) +
                "\n\nFirst steps:\n  knit nodes\n  knit run -N 2 --gpus-per-node 8 -- python3 train.py\n  knit queue\n  knit show job 1");
    DeclareJobs();
    DeclareNodes();
    DeclarePlacement();
    DeclareRest();
    for (CLI::App* command : app_.get_subcommands({})) AddCommonFlags(command);
  }

  int Main(int argc, char** argv) {
    if (const std::optional<std::vector<std::string>> plan = OfflinePlan(argc, argv)) return ExecPlan(MakeOutput(), *plan);
    if (const std::string suggestion = UnknownCommand(argc, argv); !suggestion.empty()) {
      std::cerr << "knit: error: " << suggestion << "\n";
      return kBadInput;
    }
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? kOk : kBadInput;
    }
    Connection connection(scheduler_, absl::Seconds(timeout_s_));
    Session session = {&connection, MakeOutput()};
    return action_(session);
  }

 private:
  // `knit plan --topology ...` needs no daemon: the words after "plan" are knit-plan's.
  static std::optional<std::vector<std::string>> OfflinePlan(int argc, char** argv) {
    if (argc < 2 || std::string(argv[1]) != "plan") return std::nullopt;
    const std::vector<std::string> arguments(argv + 2, argv + argc);
    for (const std::string& argument : arguments) {
      if (argument == "--topology" || argument.rfind("--topology=", 0) == 0) return arguments;
    }
    return std::nullopt;
  }

  std::string UnknownCommand(int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') return "";
    std::vector<std::string> names;
    for (const CLI::App* command : app_.get_subcommands({})) names.push_back(command->get_name());
    for (const std::string& name : names) {
      if (name == argv[1]) return "";
    }
    return "unknown command '" + std::string(argv[1]) + "'" + DidYouMean(argv[1], names) + " (knit --help lists them)";
  }

  Output MakeOutput() const {
    Output output;
    output.out = &std::cout;
    output.err = &std::cerr;
    if (format_ == "json") output.format = OutputFormat::kJson;
    if (format_ == "yaml") output.format = OutputFormat::kYaml;
    if (format_ == "wide") output.format = OutputFormat::kWide;
    output.headers = !no_headers_;
    const char* no_colour = std::getenv("NO_COLOR");
    output.colour = isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
    output.progress = isatty(STDERR_FILENO) == 1;
    return output;
  }

  CLI::App* Command(const char* name, const char* what, const char* examples, std::function<int(Session&)> action) {
    CLI::App* command = app_.add_subcommand(name, what);
    command->footer(std::string("Examples:\n") + examples);
    command->callback([this, action = std::move(action)] { action_ = action; });
    return command;
  }

  void AddCommonFlags(CLI::App* command) {
    command->add_option("--scheduler", scheduler_, "HOST:PORT of knitd (KNIT_SCHEDULER)")->envname("KNIT_SCHEDULER")->capture_default_str();
    command->add_option("-o,--output", format_, "text, wide, json or yaml")
        ->check(CLI::IsMember({"text", "wide", "json", "yaml"}))
        ->capture_default_str();
    command->add_flag("--no-headers", no_headers_, "No header line in tables");
    command->add_option("--timeout", timeout_s_, "Seconds that a call may take")->check(CLI::Range(0.1, 3600.0))->capture_default_str();
    for (CLI::App* child : command->get_subcommands({})) AddCommonFlags(child);
  }

  void AddSubmitFlags(CLI::App* command, FlagValues* values) {
    for (const SubmitFlag& flag : SubmitFlags()) {
      std::string names = std::string("--") + flag.name;
      if (*flag.alias != '\0') names += std::string(",--") + flag.alias;
      if (flag.letter != 0) names = std::string("-") + flag.letter + "," + names;
      if (flag.kind == FlagKind::kSwitch) {
        command->add_flag_callback(
            names, [values, &flag] { (*values)[flag.name] = ""; }, flag.help);
      } else {
        command
            ->add_option_function<std::string>(
                names, [values, &flag](const std::string& value) { (*values)[flag.name] = value; }, flag.help)
            ->type_name(flag.value);
      }
    }
  }

  void DeclareSubmit(const char* name, const char* what, const char* examples, int (*action)(Session&, const SubmitOptions&)) {
    CLI::App* command = Command(name, what, examples, [this, action](Session& session) { return action(session, submit_); });
    AddSubmitFlags(command, &submit_.flags);
    command->add_option("--wrap", submit_.wrap, "A shell command line instead of a command");
    command->add_option("--request-id", submit_.request_id, "The same id gives the same job: safe to repeat");
    command->add_option("--user", submit_.user, "Who the job belongs to (default: the login name)");
    command->add_flag("--parsable", submit_.parsable, "Print the job id only");
    command->add_option("command", submit_.command, "A program with its arguments (after --), an sbatch script, or a YAML job file");
    command->prefix_command(false);
    command->positionals_at_end(true);
  }

  void DeclareJobs() {
    DeclareSubmit(
        "submit", "Queue a job; prints its id once it is on disk",
        "  knit submit -N 128 --gpus-per-node 8 --parallelism tp=8,pp=16,dp=8 -t 1-12 -- python3 train.py\n"
        "  knit submit train.sbatch\n  knit submit job.yaml -J again\n  knit submit --array 0-9%2 --wrap 'echo $KNIT_ARRAY_TASK_ID'",
        Submit);
    DeclareSubmit("run", "Queue a job, follow its logs, exit with its code; Ctrl-C cancels it",
                  "  knit run -N 2 --gpus-per-node 8 -- python3 train.py\n  knit run --wrap 'hostname; nvidia-smi'", Run);
    CLI::App* queue = Command("queue", "Jobs that have not ended (or those asked for)",
                              "  knit queue -u me\n  knit queue -t failed,timed-out -o wide\n  knit queue -w h[001-064]",
                              [this](Session& session) { return Queue(session, queue_); });
    queue->add_option("-u,--user", queue_.user, "Of this user; me: the caller");
    queue->add_option("-t,--states", queue_.states, "In these states: pending,running,...; all");
    queue->add_option("-p,--partition", queue_.partition, "In this partition");
    queue->add_option("-n,--name", queue_.name, "With this name");
    queue->add_option("-w,--nodelist", queue_.nodes, "On these hosts");
    queue->add_option("jobs", queue_.jobs, "These jobs or arrays");
    CLI::App* cancel = Command("cancel", "End jobs: SIGTERM, the grace period, SIGKILL", "  knit cancel 4711\n  knit cancel 12 13",
                               [this](Session& session) { return Cancel(session, words_); });
    cancel->add_option("jobs", words_, "Jobs or arrays")->required();
    CLI::App* logs =
        Command("logs", "What ranks wrote", "  knit logs -f 4711\n  knit logs --rank 3 --tail 50 4711\n  knit logs --attempt 1 4711",
                [this](Session& session) { return Logs(session, logs_); });
    logs->add_option("job", logs_.job, "The job")->required();
    logs->add_option("-r,--rank", logs_.ranks, "Of these ranks (default: all)")->delimiter(',');
    logs->add_option("--attempt", logs_.attempt, "Of this attempt (default: the last)");
    logs->add_option("-n,--tail", logs_.tail_lines, "From the last so many lines of each rank");
    logs->add_flag("-f,--follow", logs_.follow, "Go on as more is written");
    logs->add_flag("--prefix", logs_.prefix, "\"rank N: \" before each line");
  }

  void DeclareNodes() {
    CLI::App* nodes =
        Command("nodes", "Hosts by state", "  knit nodes\n  knit nodes -N -t drained,down\n  knit nodes -N --domain pod03 -o wide",
                [this](Session& session) { return Nodes(session, nodes_); });
    nodes->add_flag("-N,--each", nodes_.each, "One line a node");
    nodes->add_option("-t,--states", nodes_.states, "In these states: idle,mixed,allocated,draining,drained,down");
    nodes->add_option("-w,--nodelist", nodes_.nodes, "These hosts");
    nodes->add_option("--domain", nodes_.domain, "Hosts of this domain");
    CLI::App* drain = Command("drain", "Give nodes no new work; what runs goes on", "  knit drain h[001-004] --reason 'new optics'",
                              [this](Session& session) { return Drain(session, words_, reason_); });
    drain->add_option("nodes", words_, "Host lists")->required();
    drain->add_option("--reason", reason_, "Why, for the colleague who finds it")->required();
    CLI::App* resume = Command("resume", "Give nodes work again", "  knit resume h[001-004]",
                               [this](Session& session) { return Resume(session, words_); });
    resume->add_option("nodes", words_, "Host lists")->required();
  }

  void DeclareShow() {
    CLI::App* show = app_.add_subcommand("show", "All about one job or node");
    show->require_subcommand(1);
    show->footer("Examples:\n  knit show job 4711\n  knit show node h001 -o yaml");
    CLI::App* job = show->add_subcommand("job", "Placement in rank order and its cost, attempts, verdict");
    job->add_option("job", word_, "Its id")->required();
    job->callback([this] { action_ = [this](Session& session) { return ShowJob(session, word_); }; });
    CLI::App* node = show->add_subcommand("node", "State, GPUs, jobs, conditions");
    node->add_option("node", word_, "Its name")->required();
    node->callback([this] { action_ = [this](Session& session) { return ShowNode(session, word_); }; });
  }

  void DeclareTopology() {
    CLI::App* topo = app_.add_subcommand("topo", "The fabric");
    topo->require_subcommand(1);
    topo->footer("Examples:\n  knit topo apply --dry-run cluster.yaml\n  knit topo show");
    CLI::App* apply = topo->add_subcommand("apply", "Make the fabric that of a description; what stays keeps its work");
    apply->add_option("file", word_, "YAML, topology.conf, topology.yaml or ibnetdiscover output")->required();
    apply->add_flag("--dry-run", dry_run_, "Show the difference, change nothing");
    apply->callback([this] { action_ = [this](Session& session) { return TopologyApply(session, word_, dry_run_); }; });
    CLI::App* show = topo->add_subcommand("show", "Tiers, domains and capacities");
    show->add_flag("--description", description_, "Print the description as applied");
    show->callback([this] { action_ = [this](Session& session) { return TopologyShow(session, description_); }; });
  }

  void DeclarePlacement() {
    DeclareShow();
    DeclareTopology();
    CLI::App* plan = Command("plan", "Where a gang would go, and what that costs; with --topology FILE offline, by knit-plan",
                             "  knit plan -N 96 --gpus-per-node 8 --require pod\n  knit plan --topology cluster.yaml --nodes 2048 "
                             "--parallelism tp=8,pp=16,dp=128 -o json",
                             [this](Session& session) { return Plan(session, plan_); });
    AddSubmitFlags(plan, &plan_.flags);
    plan->add_option("--evaluate", plan_.evaluate, "Cost of these hosts in slot order instead of a search");
  }

  void DeclareRest() {
    CLI::App* completion = Command("completion", "Completion script for a shell",
                                   "  source <(knit completion bash)\n  knit completion fish > ~/.config/fish/completions/knit.fish",
                                   [this](Session& session) {
                                     *session.output.out << CompletionScript(word_, Words());
                                     return static_cast<int>(kOk);
                                   });
    completion->add_option("shell", word_, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }

  CommandWords Words() const {
    CommandWords words;
    AddWords("", &app_, &words);
    return words;
  }

  static void AddWords(const std::string& name, const CLI::App* app, CommandWords* words) {
    std::vector<std::string>& own = (*words)[name];
    for (const CLI::App* child : app->get_subcommands([](const CLI::App*) { return true; })) own.push_back(child->get_name());
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& flag : option->get_lnames()) own.push_back("--" + flag);
    }
    for (const CLI::App* child : app->get_subcommands([](const CLI::App*) { return true; })) {
      AddWords(name.empty() ? child->get_name() : name + " " + child->get_name(), child, words);
    }
  }

  CLI::App app_;
  std::function<int(Session&)> action_;
  std::string scheduler_ = "127.0.0.1:7411", format_ = "text", word_, reason_;
  double timeout_s_ = 30;
  bool no_headers_ = false, dry_run_ = false, description_ = false;
  std::vector<std::string> words_;
  SubmitOptions submit_;
  QueueOptions queue_;
  LogsOptions logs_;
  NodesOptions nodes_;
  PlanOptions plan_;
};

}  // namespace
}  // namespace closeknit

int main(int argc, char** argv) { return closeknit::Program().Main(argc, argv); }
