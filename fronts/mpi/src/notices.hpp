// What the front says to the program's user on stderr, once for each kind, and what the report at the end repeats.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace farsum::mpi {

// Any thread may call.
class Notices {
 public:
  // `silent`: another rank says it, and this one keeps it for the report only.
  enum class Voice : std::uint8_t { aloud, silent };
  // A later sentence of the same kind is dropped.
  void say_once(const char* kind, const std::string& sentence, Voice voice = Voice::aloud);
  // What was said so far, in the order of the kinds' names.
  std::vector<std::string> said();

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> said_;  // by kind; guarded by mutex_
};

}  // namespace farsum::mpi
