#include "runtime/windows.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "runtime/link_models.hpp"
#include "runtime/window_builder.hpp"

namespace farsum {

Windows::Windows(const Parts& parts)
    : parts_(parts),
      teardown_({parts.services.node, parts.services.waiter, parts.circle, parts.services.exposures,
                 parts.services.promotions, parts.services.extents, registry_}),
      regions_({parts.services.node, parts.watch, parts.services.exposures, parts.services.descriptions,
                parts.services.extents}) {}

Result<WindowObject*> Windows::allocate(Group& group, std::uint64_t bytes, const WindowOptions& options) {
  WindowWish wish;
  wish.flavour = Flavour::allocated;
  wish.bytes = bytes;
  return make(group, wish, options);
}

Result<WindowObject*> Windows::adopt(Group& group, void* memory, std::uint64_t bytes, const WindowOptions& options) {
  WindowWish wish;
  wish.flavour = Flavour::adopted;
  wish.memory = static_cast<std::byte*>(memory);
  wish.bytes = bytes;
  // From address 0 on there is always something that is not mapped: MPI programs expose the whole address space so, and
  // each operation finds out whether its bytes are there.
  wish.unsure = memory == nullptr && bytes != 0;
  return make(group, wish, options);
}

Result<WindowObject*> Windows::create_dynamic(Group& group, const WindowOptions& options) {
  WindowWish wish;
  wish.flavour = Flavour::dynamic;
  return make(group, wish, options);
}

Result<WindowObject*> Windows::make(Group& group, WindowWish& wish, const WindowOptions& options) {
  WindowBuilder builder(parts_.services, registry_, group, wish, options);
  builder.prepare([&](Status& refusal) { refusal = begin(wish, options); });
  if (Status status = builder.exchange_offers(); !status.is_ok()) return status;
  if (Status status = builder.agree_on_cards(); !status.is_ok()) return status;
  if (Status status = builder.agree_on_extent(); !status.is_ok()) return status;
  return builder.make_parts();
}

// What this rank does before it meets anybody; why it cannot take part, where it cannot.
Status Windows::begin(WindowWish& wish, const WindowOptions& options) {
  if (options.lacks_memory) throw std::bad_alloc();
  // First of all: a thread's stack may be mapped where the program has nothing.
  if (wish.flavour == Flavour::adopted && wish.bytes != 0 && !wish.unsure)
    wish.refusal = parts_.services.descriptions.look_at(wish, "farsum_window_adopt");
  teardown_.note_thread();
  teardown_.sweep_circles();
  // Nobody asks anything of a rank without windows, so the first starts the agent, where the network has not. Mutexes
  // need none: the network has one started.
  Status no_agent = options.mutexes ? Status() : parts_.agent.start();
  // Files are read here, not while other ranks wait.
  parts_.models.at(own_machine_number());
  for (const std::uint32_t machine : parts_.services.remote_nodes.machines()) parts_.models.at(machine);
  const Status& refused = !options.refusal.is_ok() ? options.refusal : wish.refusal;
  return refused.is_ok() ? std::move(no_agent) : Status(refused.code(), refused.text());
}

Status Windows::attach(WindowObject& object, void* memory, std::uint64_t bytes) {
  return regions_.attach(object, memory, bytes);
}

Status Windows::detach(WindowObject& object, const void* memory) { return regions_.detach(object, memory); }

Status Windows::prepare_free(WindowObject& object, const char* call) { return teardown_.prepare_free(object, call); }

Status Windows::free(WindowObject* object) { return teardown_.free(object); }

Status Windows::find_open() const {
  for (const std::unique_ptr<WindowObject>& object : registry_.living()) {
    if (object->mutexes != nullptr) {
      if (Status held = object->mutexes->find_held(); !held.is_ok()) return held;
    }
    if (object->internal || object->prepared) continue;
    Status status = object->window->settle("farsum_finalize");
    if (!status.is_ok()) return {Code::pending, std::string(status.text())};
  }
  return {};
}

void Windows::abandon_all() {
  for (const std::unique_ptr<WindowObject>& object : registry_.living()) {
    if (object->mutexes != nullptr) object->mutexes->unlock_all();
    object->window->abandon("farsum_finalize_forced");
  }
}

}  // namespace farsum
