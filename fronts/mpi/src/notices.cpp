#include "notices.hpp"

#include <cstdio>

namespace farsum::mpi {

void Notices::say_once(const char* kind, const std::string& sentence, Voice voice) {
  const std::lock_guard lock(mutex_);
  if (!said_.emplace(kind, sentence).second || voice == Voice::silent) return;
  std::fprintf(stderr, "farsum: %s\n", sentence.c_str());
}

std::vector<std::string> Notices::said() {
  std::vector<std::string> sentences;
  const std::lock_guard lock(mutex_);
  for (const auto& [kind, sentence] : said_) sentences.push_back(sentence);
  return sentences;
}

}  // namespace farsum::mpi
