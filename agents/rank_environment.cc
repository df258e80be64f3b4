#include "agents/rank_environment.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace closeknit {
namespace {

struct Numbers {
  uint32_t local_rank, local_world, rank, world, node, nodes;
};

Numbers NumbersOf(const v1::PrepareSlot& prepare, uint32_t local_rank) {
  const uint32_t n = prepare.ranks_per_node();
  return {local_rank, n, prepare.slot() * n + local_rank, prepare.slots() * n, prepare.slot(), prepare.slots()};
}

bool IsPerHost(const v1::PrepareSlot& prepare) { return prepare.spec().entry() == v1::ENTRY_MODE_PER_HOST; }

template <typename T>
void Set(Environment& env, absl::string_view name, const T& value) {
  env[std::string(name)] = absl::StrCat(value);
}

// By index where the job has the whole host, as most programs expect; by UUID where others share it, as indices mislead there.
std::string VisibleDevices(const v1::ShimOrder& order) {
  const v1::PrepareSlot& prepare = order.prepare();
  const bool whole_host = static_cast<uint32_t>(prepare.gpus_size()) == order.host_gpus();
  if (!whole_host && order.gpu_uuids_size() == prepare.gpus_size()) return absl::StrJoin(order.gpu_uuids(), ",");
  return absl::StrJoin(prepare.gpus(), ",");
}

void SetTorchrun(const v1::ShimOrder& order, const v1::StartSlot& start, const Numbers& is, Environment& env) {
  const v1::PrepareSlot& prepare = order.prepare();
  Set(env, "WORLD_SIZE", is.world);
  Set(env, "LOCAL_WORLD_SIZE", is.local_world);
  Set(env, "GROUP_RANK", is.node);
  Set(env, "GROUP_WORLD_SIZE", is.nodes);
  Set(env, "ROLE_NAME", "default");
  Set(env, "ROLE_WORLD_SIZE", is.world);
  Set(env, "MASTER_ADDR", start.master_address());
  Set(env, "MASTER_PORT", start.master_port());
  Set(env, "TORCHELASTIC_RUN_ID", absl::StrCat("knit-", prepare.id().job_id()));
  Set(env, "TORCHELASTIC_RESTART_COUNT", prepare.restart_count());
  Set(env, "TORCHELASTIC_MAX_RESTARTS", prepare.max_restarts());
  Set(env, "TORCHELASTIC_USE_AGENT_STORE", "False");  // else rank 0 waits for a store that nobody hosts
  if (IsPerHost(prepare)) return;
  Set(env, "RANK", is.rank);
  Set(env, "LOCAL_RANK", is.local_rank);
  Set(env, "ROLE_RANK", is.rank);
  Set(env, "TORCHELASTIC_ERROR_FILE", ErrorFile(order, is.local_rank));
}

// What `torchrun` itself reads, so that `--entry=per-host -- torchrun train.py` needs no flags.
void SetTorchrunInputs(const v1::StartSlot& start, const Numbers& is, Environment& env) {
  Set(env, "PET_NNODES", is.nodes);
  Set(env, "PET_NODE_RANK", is.node);
  Set(env, "PET_NPROC_PER_NODE", is.local_world);
  Set(env, "PET_MASTER_ADDR", start.master_address());
  Set(env, "PET_MASTER_PORT", start.master_port());
}

void SetKnit(const v1::ShimOrder& order, const v1::StartSlot& start, const GangHost& here, Environment& env) {
  const v1::PrepareSlot& prepare = order.prepare();
  Set(env, "KNIT_JOB_ID", prepare.id().job_id());
  Set(env, "KNIT_JOB_NAME", prepare.spec().name());
  Set(env, "KNIT_ATTEMPT", prepare.id().attempt());
  Set(env, "KNIT_USER", prepare.user());
  Set(env, "KNIT_NODE", order.node());
  Set(env, "KNIT_NODE_RANK", prepare.slot());
  Set(env, "KNIT_NNODES", prepare.slots());
  if (start.gang().hosts().size() <= kMaxNodeListBytes) Set(env, "KNIT_NODELIST", start.gang().hosts());
  Set(env, "KNIT_HOSTFILE", absl::StrCat(order.spool_directory(), "/", kHostFileName));
  Set(env, "KNIT_PLACEMENT_FILE", absl::StrCat(order.spool_directory(), "/", kPlacementFileName));
  Set(env, "KNIT_DOMAINS", absl::StrJoin(here.domains, ",", absl::PairFormatter("=")));
  Set(env, "KNIT_GPUS", absl::StrJoin(prepare.gpus(), ","));
  if (prepare.array_job_id() == 0) return;
  Set(env, "KNIT_ARRAY_JOB_ID", prepare.array_job_id());
  Set(env, "KNIT_ARRAY_TASK_ID", prepare.array_task_id());
}

// Outermost first, as Slurm's topology plugin has it: "core.r1.h1".
void SetSlurmTopology(const v1::ShimOrder& order, const GangHost& here, Environment& env) {
  std::string address, pattern;
  for (auto domain = here.domains.rbegin(); domain != here.domains.rend(); ++domain) {
    absl::StrAppend(&address, domain->second, ".");
    absl::StrAppend(&pattern, "switch.");
  }
  Set(env, "SLURM_TOPOLOGY_ADDR", address + order.node());
  Set(env, "SLURM_TOPOLOGY_ADDR_PATTERN", pattern + "node");
}

// For Lightning, DeepSpeed, submitit and sbatch scripts.
void SetSlurm(const v1::ShimOrder& order, const v1::StartSlot& start, const GangHost& here, const Numbers& is, Environment& env) {
  const v1::PrepareSlot& prepare = order.prepare();
  const bool per_host = IsPerHost(prepare);
  const uint32_t tasks = per_host ? is.nodes : is.world;
  for (const absl::string_view name : {"SLURM_JOB_ID", "SLURM_JOBID"}) Set(env, name, prepare.id().job_id());
  for (const absl::string_view name : {"SLURM_NTASKS", "SLURM_NPROCS"}) Set(env, name, tasks);
  for (const absl::string_view name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) Set(env, name, is.nodes);
  if (start.gang().hosts().size() <= kMaxNodeListBytes) {
    for (const absl::string_view name : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"}) Set(env, name, start.gang().hosts());
  }
  Set(env, "SLURM_JOB_NAME", prepare.spec().name());
  Set(env, "SLURM_JOB_PARTITION", prepare.spec().partition());
  Set(env, "SLURM_JOB_USER", prepare.user());
  Set(env, "SLURM_SUBMIT_DIR", prepare.spec().working_directory());
  Set(env, "SLURM_STEP_ID", 0);
  Set(env, "SLURM_PROCID", per_host ? is.node : is.rank);
  Set(env, "SLURM_LOCALID", is.local_rank);
  Set(env, "SLURM_NODEID", is.node);
  Set(env, "SLURMD_NODENAME", order.node());
  Set(env, "SLURM_NTASKS_PER_NODE", per_host ? 1 : is.local_world);
  Set(env, "SLURM_RESTART_COUNT", prepare.restart_count());
  Set(env, "SLURM_GPUS_ON_NODE", prepare.gpus_size());
  SetSlurmTopology(order, here, env);
  if (prepare.array_job_id() == 0) return;
  Set(env, "SLURM_ARRAY_JOB_ID", prepare.array_job_id());
  Set(env, "SLURM_ARRAY_TASK_ID", prepare.array_task_id());
}

void SetOpenMpi(const Numbers& is, Environment& env) {
  Set(env, "OMPI_COMM_WORLD_RANK", is.rank);
  Set(env, "OMPI_COMM_WORLD_SIZE", is.world);
  Set(env, "OMPI_COMM_WORLD_LOCAL_RANK", is.local_rank);
  Set(env, "OMPI_COMM_WORLD_LOCAL_SIZE", is.local_world);
  Set(env, "OMPI_COMM_WORLD_NODE_RANK", is.local_rank);
}

}  // namespace

uint32_t ProcessesOf(const v1::PrepareSlot& prepare) { return IsPerHost(prepare) ? 1 : prepare.ranks_per_node(); }

std::string ErrorFile(const v1::ShimOrder& order, uint32_t local_rank) {
  return absl::StrCat(order.spool_directory(), "/error-", local_rank, ".json");
}

Environment JobEnvironment(const v1::ShimOrder& order) {
  Environment env(order.base_environment().begin(), order.base_environment().end());
  const v1::PrepareSlot& prepare = order.prepare();
  env.emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  env.emplace("CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // NVML's order, which the scheduler counts in
  if (!IsPerHost(prepare) && prepare.ranks_per_node() > 1) env.emplace("OMP_NUM_THREADS", "1");
  for (const auto& [name, value] : prepare.spec().environment()) env[name] = value;
  Set(env, "PWD", prepare.spec().working_directory().empty() ? "/" : prepare.spec().working_directory());
  return env;
}

Environment RankEnvironment(const v1::ShimOrder& order, const v1::StartSlot& start, const std::vector<GangHost>& hosts,
                            uint32_t local_rank) {
  const v1::PrepareSlot& prepare = order.prepare();
  const Numbers is = NumbersOf(prepare, local_rank);
  const GangHost here = prepare.slot() < hosts.size() ? hosts[prepare.slot()] : GangHost{order.node(), {}};
  Environment env = JobEnvironment(order);
  SetTorchrun(order, start, is, env);
  if (IsPerHost(prepare)) SetTorchrunInputs(start, is, env);
  Set(env, "CUDA_VISIBLE_DEVICES", VisibleDevices(order));  // empty: a job without GPUs sees none
  SetKnit(order, start, here, env);
  if (order.slurm_names()) SetSlurm(order, start, here, is, env);
  if (order.openmpi_names() && !IsPerHost(prepare)) SetOpenMpi(is, env);
  return env;
}

}  // namespace closeknit
