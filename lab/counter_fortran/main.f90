! Paper 3's shared-counter kernel in Fortran, as the paper has it: how long a task number takes while rank 0, which holds the
! counter, works too (case 1), waits in a barrier (case 2), and with a helper thread blocked in MPI (case 3).
module kernel
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi
  use counters
  implicit none

  interface
    subroutine helper_thread_start() bind(C)
    end subroutine helper_thread_start
    subroutine helper_thread_stop() bind(C)
    end subroutine helper_thread_stop
  end interface

  integer :: rank, ranks
  real(real64) :: loops_per_us
  real(real64), volatile :: work_sink

contains

  ! Work that is counted, not clocked: a rank that loses its core still has it to do.
  subroutine work(loops)
    integer(int64), intent(in) :: loops
    integer(int64) :: i
    real(real64) :: total

    total = 0
    do i = 1, loops
      total = total + 23.7d0 * real(i, real64) - total / 2.8d0
    end do
    work_sink = total
  end subroutine work

  subroutine calibrate()
    integer(int64), parameter :: loops = 200000
    real(real64) :: start, best
    integer :: i, ierror

    best = huge(best)
    do i = 1, 7
      start = MPI_Wtime()
      call work(loops)
      best = min(best, MPI_Wtime() - start)
    end do
    loops_per_us = real(loops, real64) / (best * 1d6)
    call MPI_Bcast(loops_per_us, 1, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
  end subroutine calibrate

  ! One run of all ranks; gets holds what rank 0 learns: the microseconds of each get of the others, or of the only rank.
  subroutine run_case(which, lengths_us, gets, total_ms)
    integer, intent(in) :: which
    real(real64), intent(in) :: lengths_us(0:)
    real(real64), allocatable, intent(out) :: gets(:)
    real(real64), intent(out) :: total_ms
    integer, allocatable :: tickets(:)
    real(real64), allocatable :: times(:)
    real(real64) :: start
    integer :: drawn, ierror

    allocate (tickets(size(lengths_us) + 1), times(size(lengths_us) + 1))
    drawn = 0
    call counter_reset()
    if (which == 3) call helper_thread_start()
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    start = MPI_Wtime()
    if (which /= 2 .or. rank /= 0 .or. ranks == 1) call draw_and_work()
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    total_ms = (MPI_Wtime() - start) * 1d3
    if (which == 3) call helper_thread_stop()
    call collect(tickets(:drawn), times(:drawn), size(lengths_us), gets)

  contains

    subroutine draw_and_work()
      real(real64) :: before

      do
        before = MPI_Wtime()
        drawn = drawn + 1
        if (drawn > size(tickets)) call give_up('a rank drew more numbers than there are')
        tickets(drawn) = counter_next()
        times(drawn) = (MPI_Wtime() - before) * 1d6
        if (tickets(drawn) >= size(lengths_us)) return
        if (tickets(drawn) < 0) call give_up('the counter handed out a negative number')
        call work(int(lengths_us(tickets(drawn)) * loops_per_us, int64))
      end do
    end subroutine draw_and_work

  end subroutine run_case

  subroutine collect(tickets, times, tasks, gets)
    integer, intent(in) :: tickets(:), tasks
    real(real64), intent(in) :: times(:)
    real(real64), allocatable, intent(out) :: gets(:)
    integer :: counts(ranks), offsets(ranks), all_drawn, i, ierror
    integer, allocatable :: all_tickets(:)
    real(real64), allocatable :: all_times(:), tickets_as_reals(:)
    logical, allocatable :: seen(:)

    call MPI_Allgather(size(tickets), 1, MPI_INTEGER, counts, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    all_drawn = sum(counts)
    offsets = [(sum(counts(:i - 1)), i=1, ranks)]
    allocate (all_tickets(all_drawn), all_times(all_drawn), tickets_as_reals(all_drawn), seen(0:all_drawn - 1))
    ! As reals both: without an interface, gfortran lets a routine be called with one type of buffer only.
    call MPI_Gatherv(real(tickets, real64), size(tickets), MPI_DOUBLE_PRECISION, tickets_as_reals, counts, offsets, &
                     MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierror)
    call MPI_Gatherv(times, size(times), MPI_DOUBLE_PRECISION, all_times, counts, offsets, MPI_DOUBLE_PRECISION, 0, &
                     MPI_COMM_WORLD, ierror)
    all_tickets = nint(tickets_as_reals)
    allocate (gets(0))
    if (rank /= 0) return
    ! Every number from 0 to the last, once each.
    seen = .false.
    do i = 1, all_drawn
      if (all_tickets(i) < 0 .or. all_tickets(i) >= all_drawn) call give_up('the counter left out a number')
      if (seen(all_tickets(i))) call give_up('the counter handed out a number twice')
      seen(all_tickets(i)) = .true.
    end do
    if (all_drawn < tasks) call give_up('some tasks were never drawn')
    gets = all_times(merge(1, counts(1) + 1, ranks == 1):)
  end subroutine collect

  subroutine give_up(why)
    character(len=*), intent(in) :: why
    integer :: ierror

    write (0, '(a,i0,2a)') 'rank ', rank, ': ', why
    call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end subroutine give_up

  real(real64) function median(values) result(middle)
    real(real64), intent(in) :: values(:)
    real(real64) :: sorted(size(values)), moving
    integer :: i, j

    middle = 0
    if (size(values) == 0) return
    sorted = values
    do i = 2, size(sorted)
      moving = sorted(i)
      do j = i - 1, 1, -1
        if (sorted(j) <= moving) exit
        sorted(j + 1) = sorted(j)
      end do
      sorted(j + 1) = moving
    end do
    middle = (sorted((size(sorted) + 1) / 2) + sorted(size(sorted) / 2 + 1)) / 2
  end function median

end module kernel

program lab_counter_fortran
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi
  use counters
  use kernel
  implicit none

  character(len=64) :: implementations = 'per-rank-words,tree,fetch-op', memories = 'allocate,create', cases = '1,2,3'
  character(len=64) :: shapes = 'equal,irregular'
  integer :: tasks_per_rank = 20, repeats = 5, seed = 1
  real(real64) :: task_us = 2000
  logical :: json = .false.
  integer :: provided, wanted, ierror
  character(len=:), allocatable :: library

  call read_options()
  wanted = merge(MPI_THREAD_MULTIPLE, MPI_THREAD_SINGLE, index(cases, '3') /= 0)
  call MPI_Init_thread(wanted, provided, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call find_library()
  call calibrate()
  if (rank == 0 .and. .not. json) print '(a,i0,2a,/,a)', 'lab-counter-fortran on ', ranks, ' ranks, ', library, &
    'implementation  memory   tasks     case  get/us median        mean   total/ms'
  call run_all()
  call MPI_Finalize(ierror)

contains

  subroutine read_options()
    character(len=64) :: option, text
    integer :: i, status

    i = 1
    do while (i <= command_argument_count())
      call get_command_argument(i, option)
      text = ''
      if (option /= '--help' .and. option /= '-h' .and. option /= '--json') then
        i = i + 1
        call get_command_argument(i, text)
      end if
      status = 0
      select case (option)
      case ('--help', '-h')
        call tell_usage()
        stop
      case ('--json')
        json = .true.
      case ('--implementation')
        implementations = text
        call check_choice(option, text, 'per-rank-words,tree,fetch-op')
      case ('--memory')
        memories = text
        call check_choice(option, text, 'allocate,create')
      case ('--cases')
        cases = text
        call check_choice(option, text, '1,2,3')
      case ('--tasks')
        shapes = text
        call check_choice(option, text, 'equal,irregular')
      case ('--tasks-per-rank')
        read (text, *, iostat=status) tasks_per_rank
        if (tasks_per_rank < 1) status = 1
      case ('--task-us')
        read (text, *, iostat=status) task_us
        if (task_us < 0) status = 1
      case ('--repeats')
        read (text, *, iostat=status) repeats
        if (repeats < 1) status = 1
      case ('--seed')
        read (text, *, iostat=status) seed
      case default
        call refuse('unknown option '//trim(option))
      end select
      if (status /= 0) call refuse(trim(option)//' cannot be "'//trim(text)//'"')
      i = i + 1
    end do
  end subroutine read_options

  subroutine tell_usage()
    print '(a)', 'Shared-counter kernel of paper 3 in Fortran: time to draw a task number while the owner works or waits', '', &
      '  --implementation LIST   per-rank-words, tree, fetch-op (default: all)', &
      '  --memory LIST           allocate, create (default: both)', &
      '  --cases LIST            1: the owner computes; 2: it waits in a barrier; 3: as 1, with a helper thread', &
      '  --tasks LIST            equal, irregular (default: both)', &
      '  --tasks-per-rank N      default 20', &
      '  --task-us T             mean length of a task in microseconds, default 2000', &
      '  --repeats N             default 5', &
      '  --seed N                of the irregular tasks, default 1', &
      '  --json                  one JSON object a line', '', &
      'Example: mpirun -n 2 lab-counter-fortran-mpich --cases 1,2 --implementation fetch-op'
  end subroutine tell_usage

  subroutine check_choice(option, text, choices)
    character(len=*), intent(in) :: option, text, choices
    character(len=64) :: word
    integer :: position

    position = 1
    if (len_trim(text) == 0) call refuse(trim(option)//' needs a value: '//choices)
    do while (next_word(text, position, word))
      if (index(','//choices//',', ','//trim(word)//',') == 0) call refuse(trim(option)//' cannot be "'//trim(word)// &
                                                                           '", only of: '//choices)
    end do
  end subroutine check_choice

  subroutine refuse(why)
    character(len=*), intent(in) :: why

    write (0, '(3a)') 'lab-counter-fortran: ', why, ' (--help tells the options)'
    stop 2, quiet = .true.
  end subroutine refuse

  ! Takes the next word of a list with commas; false at its end.
  logical function next_word(list, position, word) result(found)
    character(len=*), intent(in) :: list
    integer, intent(inout) :: position
    character(len=*), intent(out) :: word
    integer :: comma

    found = position <= len_trim(list)
    word = ''
    if (.not. found) return
    comma = index(list(position:), ',')
    if (comma == 0) comma = len_trim(list(position:)) + 1
    word = list(position:position + comma - 2)
    position = position + comma
  end function next_word

  subroutine find_library()
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: text
    integer :: length, i, ierr

    call MPI_Get_library_version(text, length, ierr)
    do i = 1, length
      if (iachar(text(i:i)) == 9) text(i:i) = ' '
      if (iachar(text(i:i)) == 10 .or. text(i:i) == ',') exit
    end do
    library = trim(text(:i - 1))
  end subroutine find_library

  subroutine run_all()
    character(len=64) :: implementation, memory, shape_name
    integer :: i, j, k

    i = 1
    do while (next_word(implementations, i, implementation))
      j = 1
      do while (next_word(memories, j, memory))
        k = 1
        do while (next_word(shapes, k, shape_name))
          call run_setting(trim(implementation), trim(memory), trim(shape_name))
        end do
      end do
    end do
  end subroutine run_all

  ! Irregular tasks: many short, few long, as shell quartets are; the same for every run of one seed.
  function task_lengths(shape_name) result(lengths)
    character(len=*), intent(in) :: shape_name
    real(real64) :: lengths(tasks_per_rank * ranks)
    integer :: seeds(64), i

    lengths = task_us
    if (shape_name == 'equal') return
    seeds = [(seed * 1000 + i, i=1, size(seeds))]
    call random_seed(put=seeds)
    call random_number(lengths)
    lengths = -log(1 - lengths)
    lengths = lengths * task_us * size(lengths) / sum(lengths)
  end function task_lengths

  subroutine run_setting(implementation, memory, shape_name)
    character(len=*), intent(in) :: implementation, memory, shape_name
    real(real64), allocatable :: lengths(:), nothing(:), gets(:)
    real(real64) :: totals(repeats), no_work(200 * ranks), total
    character(len=64) :: word
    integer :: position, which, i

    call counter_make(implementation, memory)
    no_work = 0
    call run_case(1, no_work, nothing, total)  ! the answer before the clock: many numbers without work between them
    lengths = task_lengths(shape_name)
    position = 1
    do while (next_word(cases, position, word))
      read (word, *) which
      if (which == 3 .and. provided < MPI_THREAD_MULTIPLE) then
        call tell_missing(implementation, memory, shape_name)
        cycle
      end if
      allocate (gets(0))
      do i = 1, repeats
        call run_case(which, lengths, nothing, totals(i))
        gets = [gets, nothing]
      end do
      if (rank == 0) call tell(implementation, memory, shape_name, which, gets, totals)
      deallocate (gets)
    end do
    call counter_free()
  end subroutine run_setting

  ! A number as JSON has it: with a digit before the point.
  function number(value) result(text)
    real(real64), intent(in) :: value
    character(len=:), allocatable :: text
    character(len=32) :: wide

    write (wide, '(f32.4)') value
    text = trim(adjustl(wide))
  end function number

  function head_of_json(implementation, memory, shape_name, which) result(head)
    character(len=*), intent(in) :: implementation, memory, shape_name
    integer, intent(in) :: which
    character(len=1024) :: head

    write (head, '(3a,i0,7a,i0)') '{"program":"lab-counter-fortran","library":"', library, '","ranks":', ranks, &
      ',"implementation":"', implementation, '","memory":"', memory, '","tasks":"', shape_name, '","case":', which
  end function head_of_json

  subroutine tell_missing(implementation, memory, shape_name)
    character(len=*), intent(in) :: implementation, memory, shape_name
    character(len=*), parameter :: why = 'n/a: this library gives no MPI_THREAD_MULTIPLE'

    if (rank /= 0) return
    if (json) then
      print '(4a)', trim(head_of_json(implementation, memory, shape_name, 3)), ',"not_available":"', why, '"}'
    else
      print '(a15,1x,a8,1x,a9,1x,a,2x,a)', implementation, memory, shape_name, '3', why
    end if
  end subroutine tell_missing

  subroutine tell(implementation, memory, shape_name, which, gets, totals)
    character(len=*), intent(in) :: implementation, memory, shape_name
    integer, intent(in) :: which
    real(real64), intent(in) :: gets(:), totals(:)
    real(real64) :: mean

    mean = sum(gets) / max(1, size(gets))
    if (json) then
      print '(11a,i0,7a)', trim(head_of_json(implementation, memory, shape_name, which)), &
        ',"get_us":{"median":', number(median(gets)), ',"low":', number(minval(gets)), ',"high":', number(maxval(gets)), &
        ',"mean":', number(mean), '},"repeats":', '', repeats, ',"total_ms":{"median":', number(median(totals)), ',"low":', &
        number(minval(totals)), ',"high":', number(maxval(totals)), '},"tickets":"distinct"}'
    else
      print '(a15,1x,a8,1x,a9,1x,i4,2f15.3,f11.2)', implementation, memory, shape_name, which, median(gets), mean, median(totals)
    end if
  end subroutine tell

end program lab_counter_fortran
