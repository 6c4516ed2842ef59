#include "trees/walk.hpp"

namespace farsum::trees {

bool advance(std::span<const Step> steps, std::size_t& at, Carrier& carrier) {
  for (; at < steps.size(); ++at) {
    const Step& step = steps[at];
    if (!(step.action == Action::send ? carrier.send(step) : carrier.take(step))) return false;
  }
  return true;
}

}  // namespace farsum::trees
