#include "agents/gpu_watch.h"

#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "agents/nvml.h"

namespace closeknit {
namespace {

bool Same(const std::vector<v1::Gpu>& a, const std::vector<v1::Gpu>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].SerializeAsString() != b[i].SerializeAsString()) return false;
  }
  return true;
}

// NVML is loaded anew each time: a driver that is installed or reloaded later is found, and one that was lost is not asked for ever.
absl::StatusOr<std::vector<v1::Gpu>> Read(const std::string& library) {
  absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Load(library);
  if (!nvml.ok()) return nvml.status();
  return (*nvml)->List();
}

}  // namespace

std::vector<v1::Gpu> SimulatedGpus(uint32_t count) {
  std::vector<v1::Gpu> gpus(count);
  for (uint32_t i = 0; i < count; ++i) {
    gpus[i].set_index(i);
    gpus[i].set_name("simulated");
    gpus[i].set_numa_node(-1);
  }
  return gpus;
}

void WatchGpus(std::string library, absl::Duration period, GpusChanged changed) {
  std::thread([library = std::move(library), period, changed = std::move(changed)] {
    std::vector<v1::Gpu> last;
    absl::Status last_why = absl::UnknownError("not read yet");
    for (;; absl::SleepFor(period)) {
      absl::StatusOr<std::vector<v1::Gpu>> now = Read(library);
      const absl::Status why = now.status();
      if (why == last_why && (!now.ok() || Same(last, *now))) continue;
      if (now.ok()) last = *std::move(now);
      last_why = why;
      changed(last, why);
    }
  }).detach();
}

}  // namespace closeknit
