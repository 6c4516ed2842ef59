#include "runtime/path_models.hpp"

#include <cstdlib>
#include <utility>

namespace farsum {

const PathModel* PathModels::known(std::uint32_t machine) {
  const MutexGuard lock(mutex_);
  const auto found = models_.find(machine);
  return found != models_.end() ? &found->second : nullptr;
}

// Files are read without the lock. Of two threads that read them at once the first decides.
const PathModel& PathModels::at(std::uint32_t machine) {
  if (const PathModel* const read = known(machine)) return *read;
  const auto environment = [](const char* name) -> const char* { return std::getenv(name); };
  PathModel model = read_path_model(settings_, environment, machine);
  if (!model.note.empty()) model.note = "; " + model.note;
  const MutexGuard lock(mutex_);
  return models_.emplace(machine, std::move(model)).first->second;
}

}  // namespace farsum
