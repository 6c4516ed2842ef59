"""An MPI program that sums into the windows of all ranks, puts, gets and takes tickets; each rank checks what it has got."""

from mpi4py import MPI

LONG = MPI.INT64_T.Get_size()
SUMS, TICKET, LEFT, COUNT = 0, 1, 2, 3
TICKETS_EACH = 100


def longs(window):
    return memoryview(window).cast("B").cast("q")


def one(value=0):
    return memoryview(bytearray(value.to_bytes(LONG, "little"))).cast("q")


def take_tickets(window):
    taken = []
    for _ in range(TICKETS_EACH):
        ticket = one()
        window.Fetch_and_op([one(1), MPI.INT64_T], [ticket, MPI.INT64_T], 0, TICKET, MPI.SUM)
        window.Flush(0)
        taken.append(ticket[0])
    return taken


def main():
    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()
    window = MPI.Win.Allocate(COUNT * LONG, LONG, comm=world)
    memory = longs(window)
    for place in range(COUNT):
        memory[place] = 0
    world.Barrier()

    window.Lock_all()
    for target in range(ranks):
        window.Accumulate([one(rank + 1), MPI.INT64_T], target, [SUMS, 1, MPI.INT64_T], MPI.SUM)
    window.Put([one(rank), MPI.INT64_T], (rank + 1) % ranks, [LEFT, 1, MPI.INT64_T])
    tickets = take_tickets(window)
    window.Flush_all()
    world.Barrier()
    got = one()
    window.Get([got, MPI.INT64_T], (rank + 1) % ranks, [SUMS, 1, MPI.INT64_T])
    window.Unlock_all()

    everybodys = sorted(sum(world.allgather(tickets), []))
    is_right = (memory[SUMS] == got[0] == ranks * (ranks + 1) // 2 and memory[LEFT] == (rank - 1) % ranks and
                everybodys == list(range(ranks * TICKETS_EACH)))
    all_right = world.allreduce(is_right, MPI.LAND)
    window.Free()
    if rank == 0:
        print(f"{ranks} ranks: {'right' if all_right else 'wrong'}", flush=True)
    return 0 if all_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
