! A matrix goes from rows dealt out in turn (as solvers want them) to rows in blocks (as stencils do) and back, again and again. The way
! there puts strided sections of both colours of columns, the way back gets them. Each stay adds to every element what can be summed up.
program sections
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: n = 240, rounds = 4
  real(real64), allocatable :: block(:, :)[:], cyclic(:, :)[:]
  integer :: images, me, rows, round, wrong

  images = num_images()
  me = this_image()
  rows = n / images
  if (rows * images /= n) error stop 'sections: 240 rows do not come out even on so many images'
  allocate (block(rows, n)[*], cyclic(rows, n)[*])
  call begin()
  sync all
  do round = 1, rounds
    call put_into_blocks()
    sync all
    call add_in_blocks()
    sync all
    call get_in_turn()
    call add_in_turn()
    sync all
  end do
  call check()
  call co_sum(wrong)
  if (me == 1) then
    if (wrong == 0) then
      print '(3(a, i0), a)', 'sections: ', n, ' x ', n, ' elements, ', rounds, ' times there and back: right'
    else
      print '(2(a, i0), a)', 'sections: wrong: ', wrong, ' of ', n * n, ' elements'
    end if
  end if
  sync all
  if (wrong /= 0) error stop 1

contains

  ! The row of the matrix that is row i of this image where rows are dealt out in turn.
  pure integer function dealt(i)
    integer, intent(in) :: i
    dealt = (i - 1) * images + me
  end function

  pure real(real64) function first(row, column)
    integer, intent(in) :: row, column
    first = modulo(row * 7919 + column * 104729, 1000)
  end function

  subroutine begin()
    integer :: i, j
    do j = 1, n
      do i = 1, rows
        cyclic(i, j) = first(dealt(i), j)
      end do
    end do
  end subroutine

  ! Finds the rows lowest, lowest + 1 and so on of this image's dealt rows that lie in another's block, and where its first one is there.
  subroutine shared_rows(other, lowest, highest, start)
    integer, intent(in) :: other
    integer, intent(out) :: lowest, highest, start
    lowest = ((other - 1) * rows - me + images) / images + 1
    highest = (other * rows - me) / images + 1
    start = dealt(lowest) - (other - 1) * rows
  end subroutine

  subroutine put_into_blocks()
    integer :: other, lo, hi, start, colour
    do other = 1, images
      call shared_rows(other, lo, hi, start)
      do colour = 1, 2
        block(start:rows:images, colour:n:2)[other] = cyclic(lo:hi, colour:n:2)
      end do
    end do
  end subroutine

  subroutine get_in_turn()
    integer :: other, lo, hi, start, colour
    do other = 1, images
      call shared_rows(other, lo, hi, start)
      do colour = 2, 1, -1
        cyclic(lo:hi, colour:n:2) = block(start:rows:images, colour:n:2)[other]
      end do
    end do
  end subroutine

  subroutine add_in_blocks()
    integer :: i
    do i = 1, rows
      block(i, :) = block(i, :) + ((me - 1) * rows + i)
    end do
  end subroutine

  subroutine add_in_turn()
    integer :: j
    do j = 1, n
      cyclic(:, j) = cyclic(:, j) + j
    end do
  end subroutine

  subroutine check()
    integer :: i, j
    wrong = 0
    do j = 1, n
      do i = 1, rows
        if (cyclic(i, j) /= first(dealt(i), j) + rounds * real(dealt(i) + j, real64)) wrong = wrong + 1
      end do
    end do
  end subroutine

end program
