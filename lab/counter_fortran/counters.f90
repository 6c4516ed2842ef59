! The three ways to share a counter that paper 3 (van Dam et al., 2008) runs or names, from Fortran. Rank 0 holds the counter.
module counters
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use mpi
  implicit none
  private
  public :: counter_make, counter_reset, counter_next, counter_free

  integer, parameter :: root = 0
  character(len=16) :: implementation
  logical :: allocated_by_mpi
  integer :: rank, ranks, words_at_root, win
  integer :: taken                        ! how many numbers this rank has had
  integer :: levels, own_type, sibling_type
  integer, pointer :: words(:) => null()  ! the window; at the root the counter itself
  integer, allocatable, asynchronous :: answers(:), ones(:)

contains

  ! Collective. The implementation is per-rank-words, tree or fetch-op; memory is allocate or create.
  subroutine counter_make(which, memory)
    character(len=*), intent(in) :: which, memory
    integer :: ierror, word_bytes, leaves
    integer(kind=MPI_ADDRESS_KIND) :: window_bytes
    type(c_ptr) :: base

    implementation = which
    allocated_by_mpi = memory == 'allocate'
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
    call MPI_Type_size(MPI_INTEGER, word_bytes, ierror)
    leaves = 1
    do while (leaves < ranks)
      leaves = 2 * leaves
    end do
    words_at_root = merge(2 * leaves, ranks, which == 'tree')
    window_bytes = merge(words_at_root * word_bytes, 0, rank == root)
    if (allocated_by_mpi) then
      call MPI_Win_allocate(window_bytes, word_bytes, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierror)
      if (rank == root) call c_f_pointer(base, words, [words_at_root])
    else
      allocate (words(words_at_root))
      call MPI_Win_create(words, window_bytes, word_bytes, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
    end if
    allocate (answers(0:ranks - 1))
    if (which == 'tree') call make_paths(leaves)
    taken = 0
    if (which == 'fetch-op') call MPI_Win_lock_all(MPI_MODE_NOCHECK, win, ierror)
    call counter_reset()
  end subroutine counter_make

  ! The nodes along this rank's path through the tree, and their siblings, as two datatypes.
  subroutine make_paths(leaves)
    integer, intent(in) :: leaves
    integer :: own_path(32), siblings(32), node, leaf, half, ierror

    levels = 0
    node = 0
    leaf = rank
    half = leaves / 2
    do while (half >= 1)
      levels = levels + 1
      if (leaf < half) then
        own_path(levels) = node + 1
        siblings(levels) = node + 2 * half
      else
        own_path(levels) = node + 2 * half
        siblings(levels) = node + 1
      end if
      node = own_path(levels)
      leaf = mod(leaf, half)
      half = half / 2
    end do
    allocate (ones(levels))
    ones = 1
    call MPI_Type_create_indexed_block(levels, 1, own_path, MPI_INTEGER, own_type, ierror)
    call MPI_Type_create_indexed_block(levels, 1, siblings, MPI_INTEGER, sibling_type, ierror)
    call MPI_Type_commit(own_type, ierror)
    call MPI_Type_commit(sibling_type, ierror)
  end subroutine make_paths

  subroutine counter_reset()
    integer :: ierror

    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (implementation == 'fetch-op') call MPI_Win_unlock_all(win, ierror)
    taken = 0
    if (rank == root) then
      call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, root, 0, win, ierror)
      words = 0
      call MPI_Win_unlock(root, win, ierror)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (implementation == 'fetch-op') call MPI_Win_lock_all(MPI_MODE_NOCHECK, win, ierror)
  end subroutine counter_reset

  integer function counter_next() result(ticket)
    select case (implementation)
    case ('per-rank-words')
      ticket = next_of_words()
    case ('tree')
      ticket = next_of_tree()
    case default
      ticket = next_by_fetch_op()
    end select
  end function counter_next

  ! As in the paper's appendix: no word is both read and written in one epoch.
  integer function next_of_words() result(ticket)
    integer, asynchronous :: mine
    integer :: ierror, after
    integer(kind=MPI_ADDRESS_KIND) :: place

    mine = taken + 1
    after = ranks - rank - 1
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, root, 0, win, ierror)
    place = 0
    call MPI_Get(answers, rank, MPI_INTEGER, root, place, rank, MPI_INTEGER, win, ierror)
    place = rank + 1
    if (after > 0) call MPI_Get(answers(rank + 1), after, MPI_INTEGER, root, place, after, MPI_INTEGER, win, ierror)
    place = rank
    call MPI_Put(mine, 1, MPI_INTEGER, root, place, 1, MPI_INTEGER, win, ierror)
    call MPI_Win_unlock(root, win, ierror)
    answers(rank) = taken
    taken = mine
    ticket = sum(answers)
  end function next_of_words

  integer function next_of_tree() result(ticket)
    integer :: ierror
    integer(kind=MPI_ADDRESS_KIND), parameter :: start = 0

    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, root, 0, win, ierror)
    call MPI_Accumulate(ones, levels, MPI_INTEGER, root, start, 1, own_type, MPI_SUM, win, ierror)
    call MPI_Get(answers, levels, MPI_INTEGER, root, start, 1, sibling_type, win, ierror)
    call MPI_Win_unlock(root, win, ierror)
    ticket = taken
    if (levels > 0) ticket = ticket + sum(answers(0:levels - 1))
    taken = taken + 1
  end function next_of_tree

  integer function next_by_fetch_op() result(ticket)
    integer :: ierror
    integer(kind=MPI_ADDRESS_KIND), parameter :: start = 0
    integer, parameter :: one = 1

    call MPI_Fetch_and_op(one, answers, MPI_INTEGER, root, start, MPI_SUM, win, ierror)
    call MPI_Win_flush(root, win, ierror)
    ticket = answers(0)
  end function next_by_fetch_op

  subroutine counter_free()
    integer :: ierror

    if (implementation == 'fetch-op') call MPI_Win_unlock_all(win, ierror)
    if (implementation == 'tree') then
      call MPI_Type_free(own_type, ierror)
      call MPI_Type_free(sibling_type, ierror)
      deallocate (ones)
    end if
    call MPI_Win_free(win, ierror)
    if (.not. allocated_by_mpi) deallocate (words)
    deallocate (answers)
    nullify (words)
  end subroutine counter_free

end module counters
