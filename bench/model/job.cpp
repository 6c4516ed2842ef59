#include "job.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace bench {

std::string Meeting::file_of(int rank) const {
  return folder_ + "/" + std::to_string(round_) + "." + std::to_string(rank);
}

int Meeting::gather(const void* mine, void* all, std::size_t bytes, void* meeting) {
  Meeting& self = *static_cast<Meeting*>(meeting);
  const std::string path = self.file_of(self.rank_);
  std::ofstream(path + ".new", std::ios::binary)
      .write(static_cast<const char*>(mine), static_cast<std::streamsize>(bytes));
  std::filesystem::rename(path + ".new", path);
  for (int rank = 0; rank < self.size_; ++rank) {
    while (access(self.file_of(rank).c_str(), F_OK) != 0) usleep(500);
    std::ifstream in(self.file_of(rank), std::ios::binary);
    in.read(static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes, static_cast<std::streamsize>(bytes));
    if (in.gcount() != static_cast<std::streamsize>(bytes)) return 1;
  }
  ++self.round_;
  return 0;
}

void Meeting::join() {
  farsum_init_options options{};
  options.struct_bytes = sizeof options;
  if (!folder_.empty()) {
    options.rank = rank_;
    options.size = size_;
    options.allgather = gather;
    options.allgather_user = this;
  }
  require(farsum_init(&options));
}

Context::Context(Meeting& meeting, const std::string& path) {
  setenv("FARSUM_PATH", path.c_str(), 1);
  meeting.join();
  require(farsum_rank(farsum_world(), &rank_));
  require(farsum_size(farsum_world(), &size_));
}

Context::~Context() {
  if (!is_unwinding()) static_cast<void>(farsum_finalize());
}

Window::Window(Memory memory, std::size_t bytes) {
  farsum_window_options options{};
  options.struct_bytes = sizeof options;
  if (memory == Memory::allocated) {
    void* own = nullptr;
    require(farsum_window_allocate(farsum_world(), bytes, &options, &own, &window_));
    own_ = static_cast<double*>(own);
  } else {
    options.promises = FARSUM_NO_PROMOTION;
    user_.resize(bytes / sizeof(double));
    own_ = user_.data();
    require(farsum_window_adopt(farsum_world(), own_, bytes, &options, &window_));
  }
  require(farsum_lock_all(window_));
}

Window::~Window() {
  if (is_unwinding()) return;
  static_cast<void>(farsum_unlock_all(window_));
  static_cast<void>(farsum_window_free(&window_));
}

farsum_region_info Window::region(int rank) const {
  farsum_region_info info{};
  require(farsum_window_region(window_, rank, 0, &info));
  return info;
}

}  // namespace bench
