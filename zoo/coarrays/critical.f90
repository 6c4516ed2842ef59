! The longest way to 1 (halve, or triple and add one) among the first numbers: all images look at stretches of them in turn, and merge
! what each finds into the record of image 1, one image at a time. Image 1 then looks at all of them again, with a table of lengths.
program critical_sections
  use, intrinsic :: iso_fortran_env, only: int64
  implicit none
  integer, parameter :: numbers = 4000000, stretch = 10000
  integer :: longest[*], starter[*], merged[*]
  integer(int64) :: total[*]
  integer :: lowest, best, best_start, expected(2)
  integer(int64) :: sum_of_stretch, expected_total
  logical :: right[*]

  longest = 0
  starter = 0
  merged = 0
  total = 0
  sync all
  do lowest = 1 + (this_image() - 1) * stretch, numbers, num_images() * stretch
    call look(lowest, best, best_start, sum_of_stretch)
    critical
      if (best > longest[1] .or. (best == longest[1] .and. best_start < starter[1])) then
        longest[1] = best
        starter[1] = best_start
      end if
      total[1] = total[1] + sum_of_stretch
      merged[1] = merged[1] + 1
    end critical
  end do
  sync all
  if (this_image() == 1) then
    call look_again(expected, expected_total)
    right = longest == expected(1) .and. starter == expected(2) .and. total == expected_total .and. merged == numbers / stretch
    if (right) then
      print '(3(a, i0), a)', 'critical: ', starter, ' takes ', longest, ' steps, the longest of ', numbers, ' numbers: right'
    else
      print '(8(a, i0))', 'critical: wrong: ', starter, ' takes ', longest, ' steps, should be ', expected(2), ' with ', &
        expected(1), '; ', total, ' steps in all, should be ', expected_total, '; merged ', merged, ' times, should be ', &
        numbers / stretch
    end if
  end if
  sync all
  if (.not. right[1]) error stop 1

contains

  pure integer function steps_from(number)
    integer, intent(in) :: number
    integer(int64) :: n
    n = number
    steps_from = 0
    do while (n /= 1)
      n = merge(3 * n + 1, shiftr(n, 1), btest(n, 0))
      steps_from = steps_from + 1
    end do
  end function

  subroutine look(lowest, best, best_start, sum_of_stretch)
    integer, intent(in) :: lowest
    integer, intent(out) :: best, best_start
    integer(int64), intent(out) :: sum_of_stretch
    integer :: number, steps
    best = -1
    sum_of_stretch = 0
    do number = lowest, lowest + stretch - 1
      steps = steps_from(number)
      sum_of_stretch = sum_of_stretch + steps
      if (steps > best) then
        best = steps
        best_start = number
      end if
    end do
  end subroutine

  ! Follows each number only until it is below itself, whose length is known.
  subroutine look_again(expected, expected_total)
    integer, intent(out) :: expected(2)
    integer(int64), intent(out) :: expected_total
    integer, allocatable :: length(:)
    integer(int64) :: n
    integer :: number, steps
    allocate (length(numbers), source=0)
    do number = 2, numbers
      n = number
      steps = 0
      do while (n >= number)
        n = merge(3 * n + 1, shiftr(n, 1), btest(n, 0))
        steps = steps + 1
      end do
      length(number) = length(n) + steps
    end do
    expected = [maxval(length), maxloc(length)]
    expected_total = sum(int(length, int64))
  end subroutine

end program
