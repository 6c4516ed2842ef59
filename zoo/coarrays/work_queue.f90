! Tasks of unequal length: each image draws the number of the next one from a counter on image 1, which computes tasks of its own meanwhile,
! and adds what comes out into a histogram that is spread over all images. A task counts in how many ways each of its numbers is a sum of
! two squares. Summed up by pairs of squares, the same histogram comes out.
program work_queue
  use, intrinsic :: iso_fortran_env, only: atomic_int_kind
  implicit none
  integer, parameter :: tasks = 300, stretch = 1800, most = 63
  integer(atomic_int_kind) :: counter[*], histogram(0:most)[*]
  integer :: found(0:most), expected(0:most), sums(0:most), task, done, way, wrong

  counter = 0
  histogram = 0
  done = 0
  sync all
  do
    task = next_task()
    if (task >= tasks) exit
    call compute(task, found)
    do way = 0, most
      if (found(way) > 0) call atomic_add(histogram(way)[modulo(way, num_images()) + 1], found(way))
    end do
    done = done + 1
  end do
  sync all
  sums = histogram
  call co_sum(sums)
  call co_sum(done)
  call by_pairs(expected)
  wrong = count(sums /= expected)
  if (this_image() == 1) then
    if (wrong == 0 .and. done == tasks) then
      print '(2(a, i0), a)', 'work_queue: ', tasks, ' tasks, ', sum(sums), ' numbers: right'
    else
      print '(4(a, i0), a)', 'work_queue: wrong: ', done, ' of ', tasks, ' tasks, ', wrong, ' bins, ', sum(sums), ' numbers'
    end if
  end if
  sync all
  if (wrong /= 0 .or. done /= tasks) error stop 1

contains

  ! Draws by atomic_cas: OpenCoarrays 2.10 throws away what atomic_fetch_add has fetched.
  integer function next_task()
    integer(atomic_int_kind) :: now
    call atomic_ref(next_task, counter[1])
    do while (next_task < tasks)
      call atomic_cas(counter[1], now, next_task, next_task + 1)
      if (now == next_task) exit
      next_task = now
    end do
  end function

  ! Later tasks have larger numbers, which take longer.
  subroutine compute(task, found)
    integer, intent(in) :: task
    integer, intent(out) :: found(0:most)
    integer :: number, a, b, ways
    found = 0
    do number = task * stretch + 1, (task + 1) * stretch
      ways = 0
      do a = 0, int(sqrt(real(number)))
        b = nint(sqrt(real(number - a * a)))
        if (a * a + b * b == number) ways = ways + 1
      end do
      found(ways) = found(ways) + 1
    end do
  end subroutine

  subroutine by_pairs(expected)
    integer, intent(out) :: expected(0:most)
    integer, allocatable :: ways(:)
    integer :: a, b, number
    allocate (ways(tasks * stretch), source=0)
    a = 0
    do while (a * a <= size(ways))
      b = 0
      do while (a * a + b * b <= size(ways))
        if (a + b > 0) ways(a * a + b * b) = ways(a * a + b * b) + 1
        b = b + 1
      end do
      a = a + 1
    end do
    expected = 0
    do number = 1, size(ways)
      expected(ways(number)) = expected(ways(number)) + 1
    end do
  end subroutine

end program
