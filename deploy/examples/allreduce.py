"""Sums a tensor over all ranks with PyTorch's gloo backend and checks the result.

Needs nothing from Closeknit but torchrun's environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
"""

import os
import sys

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all "hosts" of the quickstart are this machine

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
tensor = torch.full((1 << 18,), float(rank + 1))
dist.all_reduce(tensor)
expected = world * (world + 1) // 2
right = bool((tensor == expected).all())
print(
    f"rank {rank} of {world} on {os.environ.get('KNIT_NODE', '?')}: "
    f"sum = {tensor[0].item():.0f}, {'as expected' if right else f'expected {expected}'}",
    flush=True,
)
dist.barrier()
dist.destroy_process_group()
sys.exit(0 if right else 1)
