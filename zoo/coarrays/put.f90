! Particles on a ring: each image owns a stretch of it, moves its particles, and puts those that leave into an inbox of the neighbour.
! Positions and speeds are whole numbers, so the place of each particle after all steps is known without any image.
program put
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  integer, parameter :: particles = 24000, steps = 4000, stretch = 100000, fastest = 5000, room = 4000
  integer :: number(particles), place(particles), speed(particles), leaving(3, room, 2)
  integer :: inbox(3, room, 2, 0:1)[*], arrived(2, 0:1)[*]   ! The last index is the step's parity: one is read while the other fills.
  integer :: me, ring, mine, step, neighbour(2), wrong

  me = this_image()
  ring = stretch * num_images()
  neighbour = [modulo(me - 2, num_images()) + 1, modulo(me, num_images()) + 1]
  call begin()
  sync all
  do step = 1, steps
    call move(modulo(step, 2))
    sync all
    call take(1, modulo(step, 2))
    call take(2, modulo(step, 2))
  end do
  wrong = count([(.not. is_right(step), step = 1, mine)])
  call co_sum(wrong)
  call co_sum(mine)
  if (me == 1) then
    if (wrong == 0 .and. mine == particles) then
      print '(a, i0, a, i0, a)', 'put: ', particles, ' particles after ', steps, ' steps: right'
    else
      print '(3(a, i0), a)', 'put: wrong: ', mine, ' of ', particles, ' particles are left, ', wrong, ' of them in a wrong place'
    end if
  end if
  sync all
  if (wrong /= 0 .or. mine /= particles) error stop 1

contains

  pure integer function first_place(i)
    integer, intent(in) :: i
    first_place = int(modulo(i * 1103515245_int64 + 12345, int(ring, int64)))
  end function

  pure integer function speed_of(i)
    integer, intent(in) :: i
    speed_of = int(modulo(i * 69069_int64 + 5, 2_int64 * fastest + 1)) - fastest
  end function

  subroutine begin()
    integer :: i
    mine = 0
    do i = 1, particles
      if (first_place(i) / stretch == me - 1) call add(i, first_place(i), speed_of(i))
    end do
  end subroutine

  subroutine add(i, x, v)
    integer, intent(in) :: i, x, v
    mine = mine + 1
    number(mine) = i
    place(mine) = x
    speed(mine) = v
  end subroutine

  ! Moves all particles by a step; those that leave go into the inbox that the neighbour keeps for this side.
  subroutine move(parity)
    integer, intent(in) :: parity
    integer :: i, kept, n(2), side
    n = 0
    kept = 0
    do i = 1, mine
      place(i) = place(i) + speed(i)
      if (place(i) < (me - 1) * stretch .or. place(i) >= me * stretch) then
        side = merge(1, 2, place(i) < (me - 1) * stretch)
        n(side) = n(side) + 1
        leaving(:, n(side), side) = [number(i), modulo(place(i), ring), speed(i)]
      else
        kept = kept + 1
        number(kept) = number(i)
        place(kept) = place(i)
        speed(kept) = speed(i)
      end if
    end do
    mine = kept
    do side = 1, 2
      inbox(:, 1:n(side), side, parity)[neighbour(side)] = leaving(:, 1:n(side), side)
      arrived(side, parity)[neighbour(side)] = n(side)
    end do
  end subroutine

  subroutine take(side, parity)
    integer, intent(in) :: side, parity
    integer :: i
    do i = 1, arrived(side, parity)
      call add(inbox(1, i, side, parity), inbox(2, i, side, parity), inbox(3, i, side, parity))
    end do
  end subroutine

  logical function is_right(i)
    integer, intent(in) :: i
    integer(int64) :: expected
    expected = modulo(first_place(number(i)) + int(steps, int64) * speed_of(number(i)), int(ring, int64))
    is_right = place(i) == expected .and. place(i) / stretch == me - 1
  end function

end program
