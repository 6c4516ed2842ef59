#include "promotion/task_list.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "os/raw_system.hpp"

namespace farsum::os {
namespace {

// The state in the text of a stat file, from where fields can be counted: it is behind the last bracket, for names may
// hold some. Null if there is none.
const char* state_in(const char* text) {
  const char* state = nullptr;
  for (const char* c = text; *c != '\0'; ++c) state = *c == ')' && c[1] == ' ' ? c + 2 : state;
  return state;
}

// The file of a thread in /proc. Shorter than the place for it, as folder and number are.
struct ThreadPath {
  ThreadPath(const char* folder, const char* name, const char* file) {
    add(folder);
    add("/");
    add(name);
    add("/");
    add(file);
    text[end] = '\0';
  }
  void add(const char* part) {
    for (; *part != '\0' && end < sizeof text - 1; ++part) text[end++] = *part;
  }

  char text[80];
  std::size_t end = 0;
};

struct Entry {
  std::uint64_t inode;
  std::int64_t position;
  std::uint16_t bytes;
  std::uint8_t type;
  char name[1];
};

}  // namespace

bool proc_is_ours() {
  char name[16] = {};
  return readlink("/proc/self", name, sizeof name - 1) > 0 && parse_number(name) == getpid();
}

pid_t parse_number(const char* text) {
  pid_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) number = number * 10 + (*text - '0');
  return number;
}

void TaskList::open(pid_t process) {
  std::snprintf(folder_, sizeof folder_, "/proc/%d/task", process);
  std::snprintf(stat_file_, sizeof stat_file_, "/proc/%d/stat", process);
}

const char* TaskList::read_text(const char* path) {
  const long fd = raw_call(SYS_openat, AT_FDCWD, raw_argument(path), O_RDONLY | O_CLOEXEC);
  long bytes = fd;
  if (fd >= 0) {
    bytes = raw_call(SYS_read, fd, raw_argument(text_), sizeof text_ - 1);
    raw_call(SYS_close, fd);
  }
  error_ = bytes < 0 ? static_cast<int>(-bytes) : 0;
  if (bytes <= 0) return nullptr;
  text_[bytes] = '\0';
  return text_;
}

const char* TaskList::read_file(const char* thread, const char* file) {
  const ThreadPath path(folder_, thread, file);
  return read_text(path.text);
}

bool TaskList::has_ended(const char* thread) {
  const char* text = read_file(thread, "stat");
  if (text == nullptr) return true;
  const char* state = state_in(text);
  return state != nullptr && (*state == 'Z' || *state == 'X');
}

// The 18th word from the state on. The file `status` has it too, behind a list of groups without limit.
long TaskList::count() {
  const char* text = read_text(stat_file_);
  const char* word = text == nullptr ? nullptr : state_in(text);
  for (int i = 1; i < 18 && word != nullptr; ++i) {
    while (*word != ' ' && *word != '\0') ++word;
    word = *word == ' ' ? word + 1 : nullptr;
  }
  return word == nullptr ? 0 : parse_number(word);
}

long TaskList::visit(Visitor visitor, void* argument) {
  const long folder = raw_call(SYS_openat, AT_FDCWD, raw_argument(folder_), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return folder;
  long listed = 0;
  long bytes = 0;
  bool goes_on = true;
  while (goes_on && (bytes = raw_call(SYS_getdents64, folder, raw_argument(names_), sizeof names_)) > 0) {
    for (long at = 0; at < bytes && goes_on;) {
      const Entry* entry = reinterpret_cast<const Entry*>(names_ + at);
      at += entry->bytes;
      if (entry->name[0] == '.') continue;
      ++listed;
      goes_on = visitor(argument, entry->name);
    }
  }
  raw_call(SYS_close, folder);
  return bytes < 0 ? bytes : listed;
}

}  // namespace farsum::os
