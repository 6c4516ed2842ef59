! Heat flows through a plate: each image owns a stretch of columns, and after each step puts its outer columns into its neighbours' halos.
! Image 1 lets the same heat flow through a plate of its own, which must come out the same to the last bit.
program stencil
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  integer, parameter :: n = 480, steps = 2000
  real(real64), parameter :: flow = 0.2_real64
  real(real64), allocatable :: plate(:, :, :)[:], whole(:, :, :)
  integer :: me, columns, step, old, new, m, wrong

  me = this_image()
  columns = n / num_images()
  if (columns * num_images() /= n) error stop 'stencil: 480 columns do not come out even on so many images'
  allocate (plate(0:n + 1, 0:columns + 1, 0:1)[*])
  call heat(plate, (me - 1) * columns)
  sync all
  do step = 1, steps
    old = modulo(step - 1, 2)
    new = modulo(step, 2)
    call spread_heat(plate(:, :, old), plate(:, :, new))
    if (me > 1) plate(1:n, columns + 1, new)[me - 1] = plate(1:n, 1, new)
    if (me < num_images()) plate(1:n, 0, new)[me + 1] = plate(1:n, columns, new)
    sync all
  end do
  wrong = 0
  if (me == 1) then
    allocate (whole(0:n + 1, 0:n + 1, 0:1))
    call heat(whole, 0)
    do step = 1, steps
      call spread_heat(whole(:, :, modulo(step - 1, 2)), whole(:, :, modulo(step, 2)))
    end do
    do m = 1, num_images()
      wrong = wrong + differences(m)
    end do
    if (wrong == 0) then
      print '(3(a, i0), a)', 'stencil: ', n, ' x ', n, ' points, ', steps, ' steps: right'
    else
      print '(2(a, i0), a)', 'stencil: wrong: ', wrong, ' of ', n * n, ' points'
    end if
  end if
  call co_sum(wrong)
  sync all
  if (wrong /= 0) error stop 1

contains

  ! One side is hot, the others are cold, and there are two hot spots; first is how many columns lie before these.
  subroutine heat(points, first)
    real(real64), intent(out) :: points(0:, 0:, 0:)
    integer, intent(in) :: first
    integer :: i, j
    do j = 0, ubound(points, 2)
      do i = 0, n + 1
        points(i, j, :) = merge(1.0_real64, 0.0_real64, i == 0)
        if ((i - n / 4)**2 + (first + j - n / 2)**2 < 900 .or. (i - n / 2)**2 + (first + j - n / 3)**2 < 400) points(i, j, :) = 5
      end do
    end do
  end subroutine

  subroutine spread_heat(from, to)
    real(real64), intent(in) :: from(0:, 0:)
    real(real64), intent(inout) :: to(0:, 0:)
    integer :: i, j
    do j = 1, ubound(from, 2) - 1
      do i = 1, n
        to(i, j) = from(i, j) + flow * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1) - 4 * from(i, j))
      end do
    end do
  end subroutine

  integer function differences(m)
    integer, intent(in) :: m
    real(real64) :: theirs(n, columns)
    theirs = plate(1:n, 1:columns, modulo(steps, 2))[m]
    differences = count(theirs /= whole(1:n, (m - 1) * columns + 1:m * columns, modulo(steps, 2)))
  end function

end program
