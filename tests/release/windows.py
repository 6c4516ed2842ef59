"""An MPI program of windows: a counter, sums, and an owner that computes while the others use its memory.

Each rank checks what it has got; rank 0 prints `N ranks on M hosts: right`, and the exit status is 0 then. The owner's memory is its own
(MPI_Win_create), and it makes no call of MPI until all others have finished: under a library whose windows need the owner's help
this ends with a sentence after LIMIT_S.
"""

import sys
import time

from mpi4py import MPI

LONG = MPI.INT64_T.Get_size()
OWNER = 0
TICKETS_EACH = 50
SUMMED = 200_000
LIMIT_S = 60
# What the owner has in its memory.
TICKET, FINISHED, TOTAL, COUNT = 0, 1, 2, 3


def longs(buffer):
    return memoryview(buffer).cast("B").cast("q")


def one(value=0):
    return longs(bytearray(value.to_bytes(LONG, "little")))


def typed(memory):
    return [memory, MPI.INT64_T]


def fetch_and_add(window, place, value):
    before = one()
    window.Fetch_and_op(typed(one(value)), typed(before), OWNER, place, MPI.SUM)
    window.Flush(OWNER)
    return before[0]


def computes(memory, others):
    """Multiplies numbers and looks at its own memory by plain loads; whether all others finished meanwhile."""
    limit = time.monotonic() + LIMIT_S
    number = 1
    while memory[FINISHED] < others:
        for factor in range(1, 1000):
            number = number * factor % 1_000_003
        if time.monotonic() > limit:
            return False
    return True


def uses_the_owner(window):
    """Draws tickets and adds each to the owner's total, then says that it has finished."""
    tickets = []
    for _ in range(TICKETS_EACH):
        tickets.append(fetch_and_add(window, TICKET, 1))
        fetch_and_add(window, TOTAL, tickets[-1])
    fetch_and_add(window, FINISHED, 1)
    return tickets


def owner_that_computes(world):
    rank, others = world.Get_rank(), world.Get_size() - 1
    memory = longs(bytearray(COUNT * LONG))
    window = MPI.Win.Create(memory if rank == OWNER else None, LONG, comm=world)
    window.Lock_all()
    tickets, in_time = [], True
    world.Barrier()
    if rank == OWNER:
        in_time = computes(memory, others)
        if not in_time:
            print(f"the others did not finish within {LIMIT_S} s while the owner computed", flush=True)
    else:
        tickets = uses_the_owner(window)
    window.Unlock_all()
    drawn = sorted(sum(world.allgather(tickets), []))
    is_right = in_time and drawn == list(range(others * TICKETS_EACH))
    if rank == OWNER:
        is_right = is_right and memory[TOTAL] == sum(drawn) and memory[TICKET] == len(drawn)
    window.Free()
    return is_right


def sums(world, make_window):
    """Everybody adds its numbers to everybody's, many at a time, and reads the neighbour's result."""
    rank, ranks = world.Get_rank(), world.Get_size()
    window, memory = make_window(world)
    numbers = longs(bytearray(SUMMED * LONG))
    for place in range(SUMMED):
        numbers[place] = place * (rank + 1)
    world.Barrier()
    window.Lock_all()
    for step in range(ranks):
        window.Accumulate(typed(numbers), (rank + step) % ranks, op=MPI.SUM)
    window.Flush_all()
    world.Barrier()
    neighbours = longs(bytearray(SUMMED * LONG))
    window.Get(typed(neighbours), (rank + 1) % ranks)
    window.Unlock_all()
    factor = ranks * (ranks + 1) // 2
    is_right = all(memory[place] == neighbours[place] == place * factor for place in range(SUMMED))
    world.Barrier()
    window.Free()
    return is_right


def of_the_library(world):
    window = MPI.Win.Allocate(SUMMED * LONG, LONG, comm=world)
    memory = longs(window)
    for place in range(SUMMED):
        memory[place] = 0
    return window, memory


def of_its_own(world):
    memory = longs(bytearray(SUMMED * LONG))
    return MPI.Win.Create(memory, LONG, comm=world), memory


def main():
    world = MPI.COMM_WORLD
    results = {"an owner that computes": owner_that_computes(world), "sums into allocated memory": sums(world, of_the_library),
               "sums into memory of its own": sums(world, of_its_own)}
    wrong = [name for name, is_right in results.items() if not is_right]
    if wrong:
        print(f"rank {world.Get_rank()}: wrong: {', '.join(wrong)}", flush=True)
    all_right = world.allreduce(not wrong, MPI.LAND)
    hosts = set(world.allgather(MPI.Get_processor_name()))
    if world.Get_rank() == 0:
        print(f"{world.Get_size()} ranks on {len(hosts)} hosts: {'right' if all_right else 'wrong'}", flush=True)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
