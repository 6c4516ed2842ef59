! The squares modulo a prime, found by all images in a hash table that is spread over them. A free slot is taken by atomic_cas; who took
! one draws a number, and tells the slot's image by atomic_add and atomic_and. Number theory says how many squares there are, and their
! sum.
program atomics
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind, int64
  implicit none
  integer, parameter :: taken = 1, unseen = 2, drawn = 3
  integer, parameter :: prime = 80021, slots = 65536   ! The prime is 1 modulo 4; the slots are those of all images together.
  integer(atomic_int_kind), allocatable :: slot(:)[:]
  integer(atomic_int_kind) :: count(4)[*]   ! Slots taken on this image, remainders by 32 not seen yet, and on image 1 numbers drawn.
  integer(atomic_int_kind) :: before, total, left
  integer(int64) :: sums(3)   ! Of the squares that this image was first to find, of the numbers that it drew, and how many they are.
  integer :: base, key, at
  logical :: right

  allocate (slot((slots + num_images() - 1) / num_images())[*], source=0_atomic_int_kind)
  call atomic_define(count(taken), 0)
  call atomic_define(count(unseen), not(0))
  call atomic_define(count(drawn), 0)
  sync all
  sums = 0
  do base = this_image(), prime - 1, num_images()
    key = int(modulo(int(base, int64)**2, int(prime, int64)))
    at = int(modulo(key * 2654435761_int64, int(slots, int64)))
    do
      call atomic_cas(slot(at / num_images() + 1)[modulo(at, num_images()) + 1], before, 0, key)
      if (before == 0) call found(modulo(at, num_images()) + 1)
      if (before == 0 .or. before == key) exit
      at = modulo(at + 1, slots)
    end do
  end do
  sync all
  call add_up()
  if (this_image() == 1) then
    if (right) then
      print '(2(a, i0), a)', 'atomics: ', total, ' squares modulo ', prime, ': right'
    else
      print '(6(a, i0))', 'atomics: wrong: ', total, ' squares modulo ', prime, ' (', sums(3), ' found), sum ', sums(1), &
        ', numbers ', sums(2), ', bits left ', left
    end if
  end if
  sync all
  if (.not. right) error stop 1

contains

  subroutine found(holder)
    integer, intent(in) :: holder
    call atomic_add(count(taken)[holder], 1)
    call atomic_and(count(unseen)[holder], not(ibset(0, modulo(key, 32))))
    sums = sums + [key, next_number(), 1]
  end subroutine

  ! Draws by atomic_cas: OpenCoarrays 2.10 throws away what atomic_fetch_add has fetched.
  integer function next_number()
    integer(atomic_int_kind) :: now
    call atomic_ref(next_number, count(drawn)[1])
    do
      call atomic_cas(count(drawn)[1], now, next_number, next_number + 1)
      if (now == next_number) exit
      next_number = now
    end do
  end function

  subroutine add_up()
    integer :: m
    integer(atomic_int_kind) :: one
    total = 0
    left = 0
    do m = 1, num_images()
      call atomic_ref(one, count(taken)[m])
      total = total + one
      call atomic_ref(one, count(unseen)[m])
      left = ior(left, one)
    end do
    call co_sum(sums)
    right = total == (prime - 1) / 2 .and. sums(3) == total .and. sums(1) == int(prime, int64) * (prime - 1) / 4 &
      .and. sums(2) == int(total, int64) * (total - 1) / 2 .and. left == 0
  end subroutine

end program
