/* A window, and an attachment, over a range with a guard page (PROT_NONE) and a page that is not mapped, as GASNet's
 * segments have them. Only the other pages are used, until the missing ones are there.
 *
 * RUN: as=created
 * RUN: as=attached -- attached
 * RUN: as=touched with=farsum -- created touched
 *
 * EXPECTED: the window is made, and the pages that are there hold what is put (MPI-4.1 12.2.1, 12.2.4: memory is a
 * range of addresses; which pages of it can be used is the program's affair). As `touched`, and under Farsum alone, for
 * libraries crash: an access to the hole is an error when it happens, whose text names the page.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "report.h"

enum { pages = 512, guard = 200, missing = 216 };

static size_t page;

static char* map_with_holes(void) {
  char* const memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 1, pages * page);
  mprotect(memory + guard * page, page, PROT_NONE);
  munmap(memory + missing * page, page);
  return memory;
}

static void put_and_get(char* memory, MPI_Aint base_of_peer, MPI_Win win) {
  const size_t places[] = {page + 7,           guard * page - 1,     (guard + 1) * page,
                           missing * page - 1, (missing + 1) * page, pages * page - 1};
  enum { count = sizeof places / sizeof *places };
  const int peer = 1 - my_rank;
  char values[count];
  for (int i = 0; i < count; ++i) {
    values[i] = (char)(10 + i);
    CALL(MPI_Put(&values[i], 1, MPI_CHAR, peer, base_of_peer + (MPI_Aint)places[i], 1, MPI_CHAR, win));
  }
  CALL(MPI_Win_flush(peer, win));
  MPI_Barrier(MPI_COMM_WORLD);
  CALL(MPI_Win_sync(win));
  for (int i = 0; i < count; ++i) {
    char got = 0;
    CALL(MPI_Get(&got, 1, MPI_CHAR, peer, base_of_peer + (MPI_Aint)places[i], 1, MPI_CHAR, win));
    CALL(MPI_Win_flush(peer, win));
    CHECK(got == 10 + i && memory[places[i]] == 10 + i, "at %zu: got %d, here is %d", places[i], got,
          memory[places[i]]);
  }
}

static void use_what_has_come(char* memory, MPI_Aint base_of_peer, MPI_Win win) {
  mprotect(memory + guard * page, page, PROT_READ | PROT_WRITE);
  mmap(memory + missing * page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  memory[guard * page + 9] = 33;
  memory[missing * page + 9] = 44;
  MPI_Barrier(MPI_COMM_WORLD);
  char got[2] = {0};
  const int peer = 1 - my_rank;
  CALL(MPI_Get(&got[0], 1, MPI_CHAR, peer, base_of_peer + (MPI_Aint)(guard * page) + 9, 1, MPI_CHAR, win));
  CALL(MPI_Get(&got[1], 1, MPI_CHAR, peer, base_of_peer + (MPI_Aint)(missing * page) + 9, 1, MPI_CHAR, win));
  CALL(MPI_Win_flush(peer, win));
  CHECK(got[0] == 33 && got[1] == 44, "pages that came: %d %d", got[0], got[1]);
}

/* The error may come with the operation or with the flush. */
static void touch_the_guard(const char* memory, MPI_Win win) {
  char value = 5, text[MPI_MAX_ERROR_STRING] = "", address[32];
  int length = 0;
  int code = MPI_Put(&value, 1, MPI_CHAR, my_rank, (MPI_Aint)(guard * page), 1, MPI_CHAR, win);
  if (code == MPI_SUCCESS) code = MPI_Win_flush(my_rank, win);
  CHECK(code != MPI_SUCCESS, "a put to a guard page succeeds");
  MPI_Error_string(code, text, &length);
  snprintf(address, sizeof address, "%llx", (unsigned long long)(uintptr_t)(memory + guard * page));
  CHECK(strstr(text, address) != NULL, "the page %s is not in: %s", address, text);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  page = (size_t)getpagesize();
  const int attached = told(argc, argv, "attached");
  char* const memory = map_with_holes();
  MPI_Aint base = 0, bases[2] = {0};
  MPI_Win win;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int code;
  if (attached) {
    CALL(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Get_address(memory, &base);
    code = MPI_Win_attach(win, memory, (MPI_Aint)(pages * page));
  } else {
    code = MPI_Win_create(memory, (MPI_Aint)(pages * page), 1, MPI_INFO_NULL, comm, &win);
  }
  CHECK(code == MPI_SUCCESS, "a range with holes: class %d", error_class(code));
  if (code != MPI_SUCCESS) return finish();
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, comm);
  CALL(MPI_Win_lock_all(0, win));
  put_and_get(memory, bases[1 - my_rank], win);
  if (argc > 2) touch_the_guard(memory, win);
  MPI_Barrier(comm);
  use_what_has_come(memory, bases[1 - my_rank], win);
  CALL(MPI_Win_unlock_all(win));
  MPI_Barrier(comm);
  if (attached) CALL(MPI_Win_detach(win, memory));
  CALL(MPI_Win_free(&win));
  CHECK(memory[page + 7] == 10, "afterwards: %d", memory[page + 7]);
  MPI_Comm_free(&comm);
  return finish();
}
