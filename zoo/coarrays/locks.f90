! Charges move between cells that are spread over all images: both cells are locked, in one order, read, changed and written back. Each
! cell also keeps the negative of its charge, which nobody may see out of step. In the end each image replays the moves of all.
program locks
  use, intrinsic :: iso_fortran_env, only: int64, lock_type
  implicit none
  integer, parameter :: cells = 16, moves = 8000
  type(lock_type) :: guard(cells)[*]
  integer :: charge(2, cells)[*]
  integer :: expected(cells), n, from, to, amount, low(2), high(2), m, torn, wrong
  integer(int64) :: seed

  charge = 0
  torn = 0
  sync all
  seed = first_seed(this_image())
  do n = 1, moves
    call draw(from, to, amount)
    low = [cell(min(from, to)), image(min(from, to))]
    high = [cell(max(from, to)), image(max(from, to))]
    lock (guard(low(1))[low(2)])
    lock (guard(high(1))[high(2)])
    call add(from, -amount)
    call add(to, amount)
    unlock (guard(high(1))[high(2)])
    unlock (guard(low(1))[low(2)])
  end do
  sync all
  expected = 0
  do m = 1, num_images()
    seed = first_seed(m)
    do n = 1, moves
      call draw(from, to, amount)
      if (image(from) == this_image()) expected(cell(from)) = expected(cell(from)) - amount
      if (image(to) == this_image()) expected(cell(to)) = expected(cell(to)) + amount
    end do
  end do
  wrong = count(charge(1, :) /= expected .or. charge(2, :) /= -expected)
  call co_sum(wrong)
  call co_sum(torn)
  if (this_image() == 1) then
    if (wrong + torn == 0) then
      print '(2(a, i0), a)', 'locks: ', moves * num_images(), ' moves between ', cells * num_images(), ' cells: right'
    else
      print '(3(a, i0), a)', 'locks: wrong: ', wrong, ' of ', cells * num_images(), ' cells, ', torn, ' seen out of step'
    end if
  end if
  sync all
  if (wrong + torn /= 0) error stop 1

contains

  pure integer function image(number)
    integer, intent(in) :: number
    image = modulo(number, num_images()) + 1
  end function

  pure integer function cell(number)
    integer, intent(in) :: number
    cell = number / num_images() + 1
  end function

  pure integer(int64) function first_seed(m)
    integer, intent(in) :: m
    first_seed = 7919 * m
  end function

  integer function below(limit)
    integer, intent(in) :: limit
    seed = modulo(seed * 16807, 2147483647_int64)
    below = int(modulo(seed / 13, int(limit, int64)))
  end function

  ! The next move of the sequence: two different cells of the cells of all images.
  subroutine draw(from, to, amount)
    integer, intent(out) :: from, to, amount
    from = below(cells * num_images())
    to = modulo(from + 1 + below(cells * num_images() - 1), cells * num_images())
    amount = 1 + below(9)
  end subroutine

  subroutine add(number, amount)
    integer, intent(in) :: number, amount
    integer :: pair(2)
    pair = charge(:, cell(number))[image(number)]
    if (pair(1) /= -pair(2)) torn = torn + 1
    pair = pair + [amount, -amount]
    charge(:, cell(number))[image(number)] = pair
  end subroutine

end program
