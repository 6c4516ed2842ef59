// Ranks that no launcher knows meet in a folder that all of them see.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace meeting {

// Returns once there is such a file, in a folder that is there. Waits for ever: who started the ranks ends them.
inline void wait_for_file(const std::filesystem::path& path) {
  const int events = inotify_init1(IN_CLOEXEC);
  // From here on nothing that comes is missed.
  if (events < 0 || inotify_add_watch(events, path.parent_path().c_str(), IN_CREATE | IN_MOVED_TO) < 0)
    throw std::runtime_error("cannot watch " + path.parent_path().string());
  alignas(inotify_event) char buffer[4096];
  while (access(path.c_str(), F_OK) != 0 && read(events, buffer, sizeof buffer) > 0) {
  }
  close(events);
}

// One process's side of an allgather through files: FOLDER/ROUND.RANK holds what the rank brought.
class FileMeeting {
 public:
  FileMeeting(std::filesystem::path folder, int rank, int size)
      : folder_(std::move(folder)), rank_(rank), size_(size) {}

  // As farsum_allgather_fn wants it; `meeting` is a FileMeeting.
  static int gather(const void* mine, void* all, std::size_t bytes, void* meeting) {
    FileMeeting& self = *static_cast<FileMeeting*>(meeting);
    const std::filesystem::path path = self.file_of(self.rank_);
    const std::string fresh = path.string() + ".new";
    std::ofstream(fresh, std::ios::binary).write(static_cast<const char*>(mine), static_cast<std::streamsize>(bytes));
    std::filesystem::rename(fresh, path);
    for (int rank = 0; rank < self.size_; ++rank) {
      wait_for_file(self.file_of(rank));
      std::ifstream in(self.file_of(rank), std::ios::binary);
      in.read(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes, static_cast<std::streamsize>(bytes));
      if (in.gcount() != static_cast<std::streamsize>(bytes)) return 1;
    }
    ++self.round_;
    return 0;
  }

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

 private:
  [[nodiscard]] std::filesystem::path file_of(int rank) const {
    return folder_ / (std::to_string(round_) + "." + std::to_string(rank));
  }

  std::filesystem::path folder_;
  int rank_;
  int size_;
  int round_ = 0;
};

}  // namespace meeting
