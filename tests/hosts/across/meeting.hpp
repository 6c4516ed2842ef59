// Ranks that no launcher knows meet in a folder that all of them see.
#pragma once

#include <cstddef>
#include <string>

namespace across {

// One process's side of an allgather through files: FOLDER/ROUND.RANK holds what the rank brought.
class Meeting {
 public:
  Meeting(std::string folder, int rank, int size) : folder_(std::move(folder)), rank_(rank), size_(size) {}

  // As farsum_allgather_fn wants it; `meeting` is a Meeting. Waits for ever: who started the ranks ends them.
  static int gather(const void* mine, void* all, std::size_t bytes, void* meeting);

 private:
  std::string file_of(int rank) const;

  std::string folder_;
  int rank_;
  int size_;
  int round_ = 0;
};

// Returns once there is such a file.
void wait_for_file(const std::string& path);

}  // namespace across
