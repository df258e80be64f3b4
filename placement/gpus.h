// Which GPUs of a host a part of it takes.
#ifndef CLOSEKNIT_PLACEMENT_GPUS_H_
#define CLOSEKNIT_PLACEMENT_GPUS_H_

#include "cluster_model/ids.h"

namespace closeknit {

// `count` of the free GPUs: those of the smallest aligned block (pair: one PCIe switch; four: one NUMA half of an 8-GPU host) that has
// enough, of those the fullest, then the first; so that larger blocks stay whole. GPUs are numbered by bus, as NVML does, and so are their
// NICs. `free` has at least `count`.
GpuSet ChooseGpus(GpuSet free, int count);

}  // namespace closeknit

#endif  // CLOSEKNIT_PLACEMENT_GPUS_H_
