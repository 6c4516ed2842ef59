"""Tasks from a queue in a window, as mpi-channels' page shows it: rank 0 puts numbers, the others take them, and each result goes back
through a second queue."""

import sys

from mpi4py import MPI
from mpi_channels import RemoteChannel

MESSAGES, ROOM = int(sys.argv[1]), 64

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
inputs, outputs = RemoteChannel(ROOM, 1), RemoteChannel(2 * MESSAGES, 1)
inputs.claim(MESSAGES)
outputs.claim(MESSAGES)
comm.Barrier()
if rank == 0:
    for number in range(MESSAGES):
        inputs.put((number,))
else:
    while (message := inputs.take()) is not None:
        # Some hundredth of a second's worth of a task.
        squares = sum((message[0] + step) ** 2 - step * step for step in range(20000))
        outputs.put((squares,))
comm.Barrier()
if rank == 0:
    found = sorted(outputs.take()[0] for _ in range(MESSAGES))
    wanted = sorted(float(sum((number + step) ** 2 - step * step for step in range(20000))) for number in range(MESSAGES))
    print("right" if found == wanted else f"wrong: {len(set(found))} of {len(set(wanted))} results are as they should be")
