// What every lab program starts and ends with: MPI itself, and the checks that stop a run whose answer is wrong. Plain
// MPI; knows nothing of Farsum.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

namespace lab {

// Ends the whole job: an answer that is wrong is worth no time.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fmt::print(stderr, "rank {}: {}\n", rank, fmt::format(format, std::forward<Args>(args)...));
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 3);
  std::abort();
}

class Session {
 public:
  explicit Session(int thread_level) {
    MPI_Init_thread(nullptr, nullptr, thread_level, &provided_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { MPI_Finalize(); }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int provided() const { return provided_; }
  [[nodiscard]] bool speaks() const { return rank_ == 0; }

  // The library's name and version, in one line.
  [[nodiscard]] static std::string library() {
    std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    text.resize(static_cast<std::size_t>(length));
    std::string line;
    for (const char letter : text.substr(0, text.find_first_of("\n,"))) {
      const bool blank = letter == '\t' || letter == ' ';
      if (!blank || (!line.empty() && line.back() != ' ')) {
        line += blank ? ' ' : letter;
      }
    }
    return line;
  }

 private:
  int rank_ = 0;
  int size_ = 0;
  int provided_ = 0;
};

inline void sleep_us(long microseconds) {
  const timespec pause{.tv_sec = 0, .tv_nsec = microseconds * 1000};
  nanosleep(&pause, nullptr);
}

// A barrier that leaves the processor to those who still work, where there are more ranks than cores.
inline void polite_barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm, &request);
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  while (done == 0) {
    sleep_us(200);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

// True on every rank if it is true on all.
inline bool all_agree(bool mine, MPI_Comm comm) {
  int verdict = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &verdict, 1, MPI_INT, MPI_LAND, comm);
  return verdict != 0;
}

}  // namespace lab
