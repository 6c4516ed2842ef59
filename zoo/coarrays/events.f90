! The longest common subsequence of two strands, in a pipeline: each image owns a stretch of columns of the table, computes a band of
! rows, puts the band's last column into the next image's buffer and posts an event. A buffer is used again when the next image says
! that it is free. Image 1 computes the same by anti-diagonals.
program events
  use, intrinsic :: iso_fortran_env, only: event_type, int64
  implicit none
  integer, parameter :: length = 9600, band = 20, buffers = 4
  character :: down(length), across(length)
  type(event_type) :: filled[*], free[*]
  integer :: border(0:band, 0:buffers - 1)[*]   ! The last column of the left neighbour, beginning with the row above the band.
  integer, allocatable :: row(:)
  integer :: me, first, last, bands, b, i, waiting, most, answer[*], expected

  me = this_image()
  first = (me - 1) * length / num_images() + 1
  last = me * length / num_images()
  call make_strand(down, 17_int64)
  call make_strand(across, 4711_int64)
  allocate (row(first - 1:last), source=0)
  bands = length / band
  most = 0
  border = 0
  sync all
  if (me < num_images()) then
    do b = 1, buffers
      event post (free[me])
    end do
  end if
  do b = 1, bands
    if (me > 1) then
      call event_query(filled, waiting)
      most = max(most, waiting)
      event wait (filled)
    end if
    call compute(b, modulo(b, buffers))
    if (me > 1) then
      event post (free[me - 1])
    end if
  end do
  if (me == num_images()) answer[1] = row(last)
  call co_max(most)
  sync all
  if (me == 1) expected = by_diagonals()
  call co_broadcast(expected, 1)
  call co_broadcast(answer, 1)
  if (me == 1) then
    if (answer == expected .and. most <= buffers) then
      print '(2(a, i0), a)', 'events: ', answer, ' of ', length, ' letters in common: right'
    else
      print '(4(a, i0))', 'events: wrong: ', answer, ' letters in common, should be ', expected, '; ', most, &
        ' bands waited at once for ', buffers
    end if
  end if
  sync all
  if (answer /= expected .or. most > buffers) error stop 1

contains

  subroutine make_strand(strand, start)
    character, intent(out) :: strand(:)
    integer(int64), intent(in) :: start
    integer(int64) :: seed
    integer :: k
    seed = start
    do k = 1, size(strand)
      seed = modulo(seed * 16807, 2147483647_int64)
      strand(k) = 'ACGT'(seed / 7 - 4 * (seed / 28) + 1:seed / 7 - 4 * (seed / 28) + 1)
    end do
  end subroutine

  ! Goes on from the band above by the rows of band number b, and hands its last column to the next image.
  subroutine compute(b, buffer)
    integer, intent(in) :: b, buffer
    integer :: edge(0:band), diagonal, above, j
    edge(0) = row(last)
    do i = 1, band
      diagonal = border(i - 1, buffer)
      row(first - 1) = border(i, buffer)
      do j = first, last
        above = row(j)
        if (down((b - 1) * band + i) == across(j)) then
          row(j) = diagonal + 1
        else
          row(j) = max(above, row(j - 1))
        end if
        diagonal = above
      end do
      edge(i) = row(last)
    end do
    if (me == num_images()) return
    event wait (free)
    border(:, buffer)[me + 1] = edge
    event post (filled[me + 1])
  end subroutine

  integer function by_diagonals()
    integer, allocatable :: table(:, :)
    integer :: s, now, k
    allocate (table(0:length, 0:2), source=0)
    do s = 2, 2 * length
      now = modulo(s, 3)
      if (s <= length) table(s, now) = 0
      do k = max(1, s - length), min(length, s - 1)
        if (down(k) == across(s - k)) then
          table(k, now) = table(k - 1, modulo(s - 2, 3)) + 1
        else
          table(k, now) = max(table(k - 1, modulo(s - 1, 3)), table(k, modulo(s - 1, 3)))
        end if
      end do
    end do
    by_diagonals = table(length, modulo(2 * length, 3))
  end function

end program
