#include "agents/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace closeknit {
namespace {

using Device = struct NvmlDeviceHandle*;

constexpr int kSuccess = 0, kNotSupported = 3;
constexpr unsigned kUuidBytes = 96, kNameBytes = 96;

// nvmlPciInfo_t: 68 bytes.
struct PciInfo {
  char legacy_bus_id[16];
  uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];  // "00000000:9B:00.0"
};
static_assert(sizeof(PciInfo) == 68);

// -1: unknown. The kernel's names have a domain of four digits and small letters.
int32_t NumaNode(const std::string& sysfs, const std::string& bus_id) {
  if (bus_id.size() < 12) return -1;
  std::string name = bus_id.substr(bus_id.size() - 12);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file(absl::StrCat(sysfs, "/bus/pci/devices/", name, "/numa_node"));
  int32_t node = -1;
  return file >> node ? node : -1;
}

}  // namespace

struct Nvml::Functions {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  bool initialised = false;

  ~Functions() {
    if (initialised) shutdown();
    if (library != nullptr) dlclose(library);
  }
  template <typename Function>
  bool Find(const char* symbol, Function** function) {
    *function = reinterpret_cast<Function*>(dlsym(library, symbol));
    return *function != nullptr;
  }
  const char* FirstMissing() {
    if (!Find("nvmlInit_v2", &init)) return "nvmlInit_v2";
    if (!Find("nvmlShutdown", &shutdown)) return "nvmlShutdown";
    if (!Find("nvmlErrorString", &error_string)) return "nvmlErrorString";
    if (!Find("nvmlDeviceGetCount_v2", &count)) return "nvmlDeviceGetCount_v2";
    if (!Find("nvmlDeviceGetHandleByIndex_v2", &handle)) return "nvmlDeviceGetHandleByIndex_v2";
    if (!Find("nvmlDeviceGetUUID", &uuid)) return "nvmlDeviceGetUUID";
    if (!Find("nvmlDeviceGetName", &name)) return "nvmlDeviceGetName";
    if (!Find("nvmlDeviceGetPciInfo_v3", &pci)) return "nvmlDeviceGetPciInfo_v3";
    return nullptr;
  }
};

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Nvml::~Nvml() = default;

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Load(const std::string& library) {
  auto functions = std::make_unique<Functions>();
  functions->library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (functions->library == nullptr) return absl::NotFoundError(absl::StrCat("NVML cannot be loaded: ", dlerror()));
  if (const char* missing = functions->FirstMissing(); missing != nullptr) {
    return absl::NotFoundError(absl::StrCat(library, " has no ", missing, ": it is not NVML, or older than release 11"));
  }
  std::unique_ptr<Nvml> nvml(new Nvml(std::move(functions)));
  RETURN_IF_ERROR(nvml->Check(nvml->functions_->init(), "start NVML"));
  nvml->functions_->initialised = true;
  return nvml;
}

absl::Status Nvml::Check(int result, const std::string& what) const {
  if (result == kSuccess) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": ", functions_->error_string(result), " (NVML error ", result, ")"));
}

absl::StatusOr<std::vector<v1::Gpu>> Nvml::List(const std::string& sysfs) const {
  unsigned count = 0;
  RETURN_IF_ERROR(Check(functions_->count(&count), "count GPUs"));
  std::vector<v1::Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(v1::Gpu gpu, Describe(i, sysfs));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

absl::StatusOr<v1::Gpu> Nvml::Describe(unsigned index, const std::string& sysfs) const {
  const std::string which = absl::StrCat(" of GPU ", index);
  Device device = nullptr;
  RETURN_IF_ERROR(Check(functions_->handle(index, &device), absl::StrCat("get the handle", which)));
  char uuid[kUuidBytes] = "", name[kNameBytes] = "";
  RETURN_IF_ERROR(Check(functions_->uuid(device, uuid, sizeof(uuid)), absl::StrCat("read the UUID", which)));
  RETURN_IF_ERROR(Check(functions_->name(device, name, sizeof(name)), absl::StrCat("read the name", which)));
  PciInfo pci = {};
  const int known = functions_->pci(device, &pci);
  if (known != kNotSupported) RETURN_IF_ERROR(Check(known, absl::StrCat("read the PCI address", which)));
  v1::Gpu gpu;
  gpu.set_index(index);
  gpu.set_uuid(uuid);
  gpu.set_name(name);
  gpu.set_pci_bus_id(std::string(pci.bus_id, strnlen(pci.bus_id, sizeof(pci.bus_id))));
  gpu.set_numa_node(NumaNode(sysfs, gpu.pci_bus_id()));
  return gpu;
}

}  // namespace closeknit
