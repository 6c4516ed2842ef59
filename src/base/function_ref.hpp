// A borrowed callable: what std::function is without owning or allocating. Valid during the call it is passed to.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace farsum {

template <class Signature>
class FunctionRef;

template <class Return, class... Arguments>
class FunctionRef<Return(Arguments...)> {
 public:
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef>)
      FunctionRef(Callable&& callable)  // NOLINT(bugprone-forwarding-reference-overload): see requires
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Arguments... arguments) -> Return {
          return (*static_cast<std::remove_reference_t<Callable>*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Return operator()(Arguments... arguments) const { return call_(object_, std::forward<Arguments>(arguments)...); }

 private:
  void* object_;
  Return (*call_)(void*, Arguments...);
};

}  // namespace farsum
