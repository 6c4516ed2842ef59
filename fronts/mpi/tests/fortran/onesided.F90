! Every one-sided routine that Fortran has, through one of its three bindings: compile with -DBINDING_MPIFH, -DBINDING_MPI or
! -DBINDING_F08. Two ranks or more; under FARSUM_MPI_STRICT=1 a routine that is not Farsum's aborts. Ends with "all checks passed".
#if defined(BINDING_F08)
#define WINDOW type(MPI_Win)
#define REQUEST type(MPI_Request)
#define GROUP type(MPI_Group)
#define INFO type(MPI_Info)
#elif defined(BINDING_MPI) || defined(BINDING_MPIFH)
#define WINDOW integer
#define REQUEST integer
#define GROUP integer
#define INFO integer
#else
#error "which binding?"
#endif

program onesided
#if defined(BINDING_F08)
  use mpi_f08
#elif defined(BINDING_MPI)
  use mpi
#endif
  use, intrinsic :: iso_c_binding, only : c_ptr, c_f_pointer, c_loc, c_associated
  implicit none
#if defined(BINDING_MPIFH)
  include 'mpif.h'
#endif
  integer, parameter :: n = 1000
  integer :: rank, ranks, next, previous, error, failures, all_failures
  integer(kind=MPI_ADDRESS_KIND) :: int_bytes

  failures = 0
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  next = mod(rank + 1, ranks)
  previous = mod(rank + ranks - 1, ranks)
  int_bytes = storage_size(rank) / 8

  call created_window()
  call allocated_windows()
  call dynamic_window()
  call epochs()

  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0 .and. all_failures == 0) print '(a)', 'all checks passed'
  call MPI_Finalize(error)
  if (all_failures /= 0) stop 1

contains

  subroutine check(good, what)
    logical, intent(in) :: good
    character(*), intent(in) :: what
    if (good) return
    failures = failures + 1
    print '(a,i0,a,a)', 'rank ', rank, ': ', what
  end subroutine

  subroutine check_attributes(window, size, unit, flavor, what)
    WINDOW, intent(in) :: window
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: size
    integer, intent(in) :: unit, flavor
    character(*), intent(in) :: what
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag, error)
    call check(flag .and. value == size, what // ': MPI_WIN_SIZE')
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, flag, error)
    call check(flag .and. value == unit, what // ': MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, value, flag, error)
    call check(flag .and. value == flavor, what // ': MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_get_attr(window, MPI_WIN_MODEL, value, flag, error)
    call check(flag .and. value == MPI_WIN_UNIFIED, what // ': MPI_WIN_MODEL')
  end subroutine

  subroutine check_base(window, address, what)
    WINDOW, intent(in) :: window
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: address
    character(*), intent(in) :: what
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Win_get_attr(window, MPI_WIN_BASE, value, flag, error)
    call check(flag .and. value == address, what // ': MPI_WIN_BASE')
  end subroutine

  subroutine created_window()
    integer, allocatable, asynchronous :: memory(:), inbox(:)
    integer :: one, old, compare, i, keyval
    WINDOW :: window
    REQUEST :: requests(4)
    GROUP :: members
    INFO :: info
    integer(kind=MPI_ADDRESS_KIND) :: address, zero, value
    logical :: flag
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length, group_ranks
    allocate(memory(n), inbox(n))
    memory = 0
    zero = 0
    call MPI_Get_address(memory, address, error)
    call MPI_Win_create(memory, n * int_bytes, int(int_bytes), MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    call check(error == MPI_SUCCESS, 'MPI_Win_create')
    call check_attributes(window, n * int_bytes, int(int_bytes), MPI_WIN_FLAVOR_CREATE, 'created')
    call check_base(window, address, 'created')

    call MPI_Win_set_name(window, 'halo', error)
#ifndef BINDING_F08
    ! Open MPI 4's own mpi_f08 returns no name.
    call MPI_Win_get_name(window, name, length, error)
    call check(name(1:length) == 'halo', 'MPI_Win_get_name')
#endif
    call MPI_Win_get_group(window, members, error)
    call MPI_Group_size(members, group_ranks, error)
    call check(group_ranks == ranks, 'MPI_Win_get_group')
    call MPI_Group_free(members, error)
    call MPI_Win_get_info(window, info, error)
    call MPI_Win_set_info(window, info, error)
    call MPI_Info_free(info, error)
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, zero, error)
    value = 4711
    call MPI_Win_set_attr(window, keyval, value, error)
    value = 0
    call MPI_Win_get_attr(window, keyval, value, flag, error)
    call check(flag .and. value == 4711, 'an attribute of the program')
    call MPI_Win_delete_attr(window, keyval, error)
    call MPI_Win_get_attr(window, keyval, value, flag, error)
    call check(.not. flag, 'a deleted attribute')
    call MPI_Win_free_keyval(keyval, error)

    inbox = [(1000 * rank + i, i = 1, n)]
    call MPI_Win_fence(0, window, error)
    call MPI_Put(inbox, n, MPI_INTEGER, next, zero, n, MPI_INTEGER, window, error)
    call MPI_Win_fence(0, window, error)
    call check(all(memory == [(1000 * previous + i, i = 1, n)]), 'MPI_Put')
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Accumulate(inbox, n, MPI_INTEGER, next, zero, n, MPI_INTEGER, MPI_SUM, window, error)
    call MPI_Win_fence(0, window, error)
    call check(all(memory == [(2 * (1000 * previous + i), i = 1, n)]), 'MPI_Accumulate')
    inbox = 0
    call MPI_Get(inbox, n, MPI_INTEGER, next, zero, n, MPI_INTEGER, window, error)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, window, error)
    call check(all(inbox == [(2 * (1000 * rank + i), i = 1, n)]), 'MPI_Get')

    ! The origin at MPI_BOTTOM: a type that holds the absolute address.
    call bottom(window, inbox)

    call MPI_Barrier(MPI_COMM_WORLD, error)
    memory = 0
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Win_lock_all(0, window, error)
    one = 1
    call MPI_Fetch_and_op(one, old, MPI_INTEGER, 0, zero, MPI_SUM, window, error)
    call MPI_Win_flush(0, window, error)
    call check(old >= 0 .and. old < ranks, 'MPI_Fetch_and_op')
    call MPI_Barrier(MPI_COMM_WORLD, error)
    compare = ranks
    one = 77
    if (rank == ranks - 1) then
      call MPI_Compare_and_swap(one, compare, old, MPI_INTEGER, 0, zero, window, error)
      call MPI_Win_flush_local(0, window, error)
      call check(old == ranks, 'MPI_Compare_and_swap')
    end if
    call MPI_Barrier(MPI_COMM_WORLD, error)
    one = 1
    call MPI_Get_accumulate(one, 1, MPI_INTEGER, old, 1, MPI_INTEGER, 0, zero, 1, MPI_INTEGER, MPI_NO_OP, window, error)
    call MPI_Win_flush_all(window, error)
    call check(old == 77, 'MPI_Get_accumulate')
    inbox = rank
    value = 1
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Rput(inbox, 1, MPI_INTEGER, next, value, 1, MPI_INTEGER, window, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    call MPI_Win_flush(next, window, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Raccumulate(inbox, 1, MPI_INTEGER, next, value, 1, MPI_INTEGER, MPI_SUM, window, requests(2), error)
    call MPI_Rget_accumulate(inbox, 1, MPI_INTEGER, inbox(2), 1, MPI_INTEGER, next, value, 1, MPI_INTEGER, MPI_NO_OP, &
                             window, requests(3), error)
    call MPI_Rget(inbox(3), 1, MPI_INTEGER, next, value, 1, MPI_INTEGER, window, requests(4), error)
    call MPI_Waitall(3, requests(2:4), MPI_STATUSES_IGNORE, error)
    call check(inbox(2) == 2 * rank, 'MPI_Rget_accumulate')
    call MPI_Win_flush_local_all(window, error)
    call MPI_Win_sync(window, error)
    call MPI_Win_unlock_all(window, error)
    call MPI_Win_free(window, error)
    call check(window == MPI_WIN_NULL, 'MPI_Win_free')
    deallocate(memory, inbox)
  end subroutine

  subroutine bottom(window, inbox)
    WINDOW, intent(in) :: window
    integer, asynchronous, intent(inout) :: inbox(n)
    integer(kind=MPI_ADDRESS_KIND) :: addresses(1), zero
    integer :: blocks(1)
#if defined(BINDING_F08)
    type(MPI_Datatype) :: types(1), absolute
#else
    integer :: types(1), absolute
#endif
    zero = 0
    blocks(1) = n
    types(1) = MPI_INTEGER
    call MPI_Get_address(inbox, addresses(1), error)
    call MPI_Type_create_struct(1, blocks, addresses, types, absolute, error)
    call MPI_Type_commit(absolute, error)
    inbox = 5 + rank
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window, error)
    call MPI_Put(MPI_BOTTOM, 1, absolute, next, zero, n, MPI_INTEGER, window, error)
    call MPI_Win_unlock(next, window, error)
    inbox = 0
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window, error)
    call MPI_Get(MPI_BOTTOM, 1, absolute, next, zero, n, MPI_INTEGER, window, error)
    call MPI_Win_unlock(next, window, error)
    call check(all(inbox == 5 + rank), 'put and get at MPI_BOTTOM')
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window, error)
    call MPI_Accumulate(MPI_BOTTOM, 1, absolute, next, zero, n, MPI_INTEGER, MPI_SUM, window, error)
    call MPI_Win_unlock(next, window, error)
    inbox = 0
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window, error)
    call MPI_Get(inbox, n, MPI_INTEGER, next, zero, n, MPI_INTEGER, window, error)
    call MPI_Win_unlock(next, window, error)
    call check(all(inbox == 2 * (5 + rank)), 'accumulate at MPI_BOTTOM')
    call MPI_Type_free(absolute, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end subroutine

  subroutine allocated_windows()
    type(c_ptr) :: base, theirs
    integer, pointer, asynchronous :: memory(:), neighbour(:)
    integer :: value, unit
    WINDOW :: window
    integer(kind=MPI_ADDRESS_KIND) :: zero, size
    zero = 0
    call MPI_Win_allocate(n * int_bytes, int(int_bytes), MPI_INFO_NULL, MPI_COMM_WORLD, base, window, error)
    call c_f_pointer(base, memory, [n])
    call check_attributes(window, n * int_bytes, int(int_bytes), MPI_WIN_FLAVOR_ALLOCATE, 'allocated')
    call check_base(window, transfer(base, zero), 'allocated')
    memory = -1
    value = rank
    call MPI_Win_fence(0, window, error)
    call MPI_Put(value, 1, MPI_INTEGER, next, zero, 1, MPI_INTEGER, window, error)
    call MPI_Win_fence(0, window, error)
    call check(memory(1) == previous .and. memory(2) == -1, 'put into an allocated window')
    call MPI_Win_free(window, error)

    call MPI_Win_allocate_shared(n * int_bytes, int(int_bytes), MPI_INFO_NULL, MPI_COMM_WORLD, base, window, error)
    call c_f_pointer(base, memory, [n])
    call check_attributes(window, n * int_bytes, int(int_bytes), MPI_WIN_FLAVOR_SHARED, 'shared')
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, window, error)
    memory = rank
    call MPI_Win_sync(window, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Win_sync(window, error)
    call MPI_Win_shared_query(window, next, size, unit, theirs, error)
    call check(size == n * int_bytes .and. unit == int_bytes .and. c_associated(theirs), 'MPI_Win_shared_query')
    call c_f_pointer(theirs, neighbour, [n])
    call check(all(neighbour == next), 'loads from the memory of another rank')
    call MPI_Win_unlock_all(window, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Win_free(window, error)

    call MPI_Alloc_mem(n * int_bytes, MPI_INFO_NULL, base, error)
    call c_f_pointer(base, memory, [n])
    memory = rank
    call MPI_Win_create(memory, n * int_bytes, int(int_bytes), MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    call check_base(window, transfer(base, zero), 'created over MPI_Alloc_mem')
    call MPI_Win_fence(0, window, error)
    call MPI_Get(value, 1, MPI_INTEGER, next, zero, 1, MPI_INTEGER, window, error)
    call MPI_Win_fence(0, window, error)
    call check(value == next, 'get from memory of MPI_Alloc_mem')
    call MPI_Win_free(window, error)
    call MPI_Free_mem(memory, error)
  end subroutine

  subroutine dynamic_window()
    integer, allocatable, asynchronous :: memory(:)
    integer(kind=MPI_ADDRESS_KIND) :: address, theirs, zero
    integer :: value
    WINDOW :: window
    allocate(memory(n))
    memory = 0
    zero = 0
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    call check_attributes(window, zero, 1, MPI_WIN_FLAVOR_DYNAMIC, 'dynamic')
    call MPI_Win_attach(window, memory, n * int_bytes, error)
    call MPI_Get_address(memory(5), address, error)
    call MPI_Sendrecv(address, 1, MPI_AINT, previous, 0, theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    value = 100 + rank
    call MPI_Win_fence(0, window, error)
    call MPI_Put(value, 1, MPI_INTEGER, next, theirs, 1, MPI_INTEGER, window, error)
    call MPI_Win_fence(0, window, error)
    call check(memory(5) == 100 + previous .and. sum(memory) == memory(5), 'put into attached memory')
    call MPI_Win_detach(window, memory, error)
    call MPI_Win_free(window, error)
    deallocate(memory)
  end subroutine

  subroutine epochs()
    integer, asynchronous :: memory(2)
    integer :: value, members(1)
    integer(kind=MPI_ADDRESS_KIND) :: one, zero
    WINDOW :: window
    GROUP :: world, targets, origins
    logical :: done
    zero = 0
    one = 1
    memory = 0
    call MPI_Comm_group(MPI_COMM_WORLD, world, error)
    members(1) = next
    call MPI_Group_incl(world, 1, members, targets, error)
    members(1) = previous
    call MPI_Group_incl(world, 1, members, origins, error)
    call MPI_Win_create(memory, 2 * int_bytes, int(int_bytes), MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    value = rank + 1
    call MPI_Win_post(origins, 0, window, error)
    call MPI_Win_start(targets, 0, window, error)
    call MPI_Put(value, 1, MPI_INTEGER, next, one, 1, MPI_INTEGER, window, error)
    call MPI_Win_complete(window, error)
    call MPI_Win_wait(window, error)
    call check(memory(2) == previous + 1, 'post, start, complete, wait')
    call MPI_Win_post(origins, 0, window, error)
    call MPI_Win_start(targets, 0, window, error)
    call MPI_Put(value, 1, MPI_INTEGER, next, zero, 1, MPI_INTEGER, window, error)
    call MPI_Win_complete(window, error)
    done = .false.
    do while (.not. done)
      call MPI_Win_test(window, done, error)
    end do
    call check(memory(1) == previous + 1, 'MPI_Win_test')
    call MPI_Group_free(world, error)
    call MPI_Group_free(targets, error)
    call MPI_Group_free(origins, error)
    call MPI_Win_free(window, error)
  end subroutine

end program
