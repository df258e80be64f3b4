// The GPUs of this host, as they are now: read in a thread of its own, as a broken driver can hang a caller for minutes.
#ifndef CLOSEKNIT_AGENTS_GPU_WATCH_H_
#define CLOSEKNIT_AGENTS_GPU_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

// `count` GPUs without a UUID, for hosts that have none.
std::vector<v1::Gpu> SimulatedGpus(uint32_t count);

// Reads NVML's list every `period` until the process ends, and calls `changed` from its own thread: with the first list, with each that
// differs from the one before, and when the list can no longer be read (`why`; the GPUs are those last seen). There is nothing to stop: a
// thread that hangs in a driver can be neither joined nor ended.
using GpusChanged = std::function<void(std::vector<v1::Gpu> gpus, absl::Status why)>;
void WatchGpus(std::string library, absl::Duration period, GpusChanged changed);

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_GPU_WATCH_H_
