! A tabulated function: each image holds a slice of the table, and interpolates at random points, getting the four entries around each
! from the image that holds them. The function itself is evaluated beside it.
program get
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  integer, parameter :: entries = 240000, points = 100000, batch = 100
  real(real64), parameter :: width = 30
  real(real64), allocatable :: table(:)[:]   ! Entry i of image m is the function at (i - 3 + (m - 1) * slice) * spacing.
  real(real64) :: spacing, x(batch), around(4, batch), worst, mean(2)
  integer :: slice, i, j, m, n
  integer(int64) :: seed

  slice = entries / num_images()
  spacing = width / (slice * num_images())
  allocate (table(slice + 4)[*])
  do i = 1, slice + 4
    table(i) = f((i - 3 + (this_image() - 1) * slice) * spacing)
  end do
  sync all
  seed = 1000 + this_image()
  worst = 0
  mean = 0
  do n = 1, points, batch
    do j = 1, batch
      x(j) = random() * width
      i = int(x(j) / spacing)
      m = min(i / slice + 1, num_images())
      i = i - (m - 1) * slice + 2
      around(:, j) = table(i:i + 3)[m]
    end do
    do j = 1, batch
      call compare(cubic(around(:, j), x(j) / spacing - int(x(j) / spacing)), f(x(j)))
    end do
  end do
  call co_max(worst)
  call co_sum(mean)
  mean = mean / (points * num_images())
  if (this_image() == 1) then
    if (worst < 1e-12_real64) then
      print '(a, i0, a, f0.9, a)', 'get: ', points * num_images(), ' interpolated values, mean ', mean(1), ': right'
    else
      print '(3(a, es23.16))', 'get: wrong: one value is off by ', worst, ', the mean is ', mean(1), ', should be ', mean(2)
    end if
  end if
  sync all
  if (worst >= 1e-12_real64) error stop 1

contains

  ! A damped oscillation: the sum of some modes, which costs about what a table is made for.
  pure real(real64) function f(t)
    real(real64), intent(in) :: t
    integer :: mode
    f = 0
    do mode = 1, 12
      f = f + exp(-0.01_real64 * mode * t) * cos(0.7_real64 * mode * t + mode) / mode**2
    end do
  end function

  ! Lagrange's polynomial through y at -1, 0, 1 and 2.
  pure real(real64) function cubic(y, t)
    real(real64), intent(in) :: y(4), t
    cubic = -y(1) * t * (t - 1) * (t - 2) / 6 + y(2) * (t + 1) * (t - 1) * (t - 2) / 2 &
      - y(3) * (t + 1) * t * (t - 2) / 2 + y(4) * (t + 1) * t * (t - 1) / 6
  end function

  subroutine compare(value, expected)
    real(real64), intent(in) :: value, expected
    worst = max(worst, abs(value - expected))
    mean = mean + [value, expected]
  end subroutine

  real(real64) function random()
    seed = iand(seed * 6364136223846793005_int64 + 1442695040888963407_int64, huge(seed))
    random = real(shiftr(seed, 10), real64) / 2.0_real64**53
  end function

end program
