// NVIDIA's management library, loaded at run time: a host without a driver runs the same program, and nothing of NVIDIA's is needed to
// build. The functions are declared here by what is public of their ABI (x86-64, NVML 13); each is looked up by its versioned name.
#ifndef CLOSEKNIT_AGENTS_NVML_H_
#define CLOSEKNIT_AGENTS_NVML_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "closeknit/v1/types.pb.h"

namespace closeknit {

inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

// Not thread-safe. Any call may hang as long as the driver does: call it from a thread that nobody waits for.
class Nvml {
 public:
  // kNotFound: no such library, or not one of NVML's. kUnavailable: the library is there, and its driver is not (both with the cause).
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // All GPUs by index, in the order of their PCI addresses; NUMA nodes are read from `sysfs`. kUnavailable names the GPU that does not
  // answer: a list with a gap would be taken for a smaller host.
  absl::StatusOr<std::vector<v1::Gpu>> List(const std::string& sysfs = "/sys") const;

 private:
  struct Functions;
  explicit Nvml(std::unique_ptr<Functions> functions);
  absl::StatusOr<v1::Gpu> Describe(unsigned index, const std::string& sysfs) const;
  absl::Status Check(int result, const std::string& what) const;

  std::unique_ptr<Functions> functions_;
};

}  // namespace closeknit

#endif  // CLOSEKNIT_AGENTS_NVML_H_
