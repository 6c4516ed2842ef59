#include "job.hpp"

#include <cstdlib>

namespace bench {

void Meeting::join() {
  farsum_init_options options{};
  options.struct_bytes = sizeof options;
  if (files_) {
    options.rank = files_->rank();
    options.size = files_->size();
    options.allgather = meeting::FileMeeting::gather;
    options.allgather_user = &*files_;
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
