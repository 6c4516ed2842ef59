! Poisson's equation on a square, solved by conjugate gradients: each image owns columns, gets the two beside them from its neighbours, and
! the dot products are co_sum. co_broadcast gives the tolerance, co_max the largest error, co_reduce the worst and the number of its
! image. The right side is made from a solution that is known.
program poisson
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: n = 360
  real(real64), allocatable :: p(:, :)[:]
  real(real64), allocatable :: x(:, :), r(:, :), q(:, :)
  real(real64) :: tolerance, residual, before, step, worst, curvature
  integer :: me, columns, iterations, j, where_worst

  me = this_image()
  columns = n / num_images()
  if (columns * num_images() /= n) error stop 'co_sum: 360 columns do not come out even on so many images'
  if (me == 1) tolerance = 1e-8_real64
  call co_broadcast(tolerance, 1)
  allocate (p(0:n + 1, 0:columns + 1)[*], source=0.0_real64)
  allocate (x(n, columns), r(n, columns), q(n, columns))
  x = 0
  call make_right_side()
  p(1:n, 1:columns) = r
  residual = dot(r, r)
  iterations = 0
  do while (sqrt(residual) > tolerance .and. iterations < 10 * n)
    call apply()
    curvature = dot(p(1:n, 1:columns), q)
    step = residual / curvature
    x = x + step * p(1:n, 1:columns)
    r = r - step * q
    before = residual
    residual = dot(r, r)
    p(1:n, 1:columns) = r + (residual / before) * p(1:n, 1:columns)
    iterations = iterations + 1
  end do
  worst = maxval([(maxval(abs(x(:, j) - solution(j))), j = 1, columns)])
  ! Digits of the error above, the image below: the largest of all says both. OpenCoarrays 2.10 reduces integers of 32 bits only.
  where_worst = nint(worst * 1e12_real64) * 1000 + me
  call co_reduce(where_worst, larger)
  call co_max(worst)
  if (me == 1) then
    if (worst < 1e-7_real64 .and. where_worst / 1000 == nint(worst * 1e12_real64)) then
      print '(2(a, i0), a)', 'co_sum: ', n * n, ' unknowns after ', iterations, ' iterations: right'
    else
      print '(a, es10.3, 3(a, i0))', 'co_sum: wrong: off by ', worst, ', by co_reduce ', where_worst / 1000, 'e-12 on image ', &
        modulo(where_worst, 1000), ', iterations: ', iterations
    end if
  end if
  sync all
  if (.not. worst < 1e-7_real64) error stop 1

contains

  pure integer function larger(a, b)
    integer, intent(in) :: a, b
    larger = max(a, b)
  end function

  real(real64) function dot(a, b)
    real(real64), intent(in) :: a(:, :), b(:, :)
    dot = sum(a * b)
    call co_sum(dot)
  end function

  ! The known solution in column j of this image: no mode of the square alone, so that more than one iteration is needed.
  pure function solution(j) result(u)
    integer, intent(in) :: j
    real(real64) :: u(n), s, t
    integer :: i
    s = real((me - 1) * columns + j, real64) / (n + 1)
    do i = 1, n
      t = real(i, real64) / (n + 1)
      u(i) = s * (1 - s) * t * (1 - t) * exp(s * t + 2 * t)
    end do
  end function

  subroutine make_right_side()
    do j = 1, columns
      p(1:n, j) = solution(j)
    end do
    call apply()
    r = q
  end subroutine

  ! q is five-point Laplacian of p, whose columns beside this image's come from the neighbours.
  subroutine apply()
    sync all
    if (me > 1) p(1:n, 0) = p(1:n, columns)[me - 1]
    if (me < num_images()) p(1:n, columns + 1) = p(1:n, 1)[me + 1]
    sync all
    do j = 1, columns
      q(:, j) = 4 * p(1:n, j) - p(0:n - 1, j) - p(2:n + 1, j) - p(1:n, j - 1) - p(1:n, j + 1)
    end do
  end subroutine

end program
