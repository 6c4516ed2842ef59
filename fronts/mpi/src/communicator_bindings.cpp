#include "communicator_bindings.hpp"

#include <memory>
#include <new>

namespace farsum::mpi {

bool CommunicatorBindings::open() {
  return library().Comm_create_keyval(MPI_COMM_NULL_COPY_FN, unbind, &keyval_, nullptr) == MPI_SUCCESS;
}

void CommunicatorBindings::close() {
  if (keyval_ != MPI_KEYVAL_INVALID) library().Comm_free_keyval(&keyval_);
}

Binding* CommunicatorBindings::find(MPI_Comm comm) const {
  void* binding = nullptr;
  int is_bound = 0;
  if (keyval_ == MPI_KEYVAL_INVALID) return nullptr;
  // MPI declares the place of a pointer as void*.
  if (library().Comm_get_attr(comm, keyval_, &binding, &is_bound) != MPI_SUCCESS || is_bound == 0) return nullptr;
  return static_cast<Binding*>(binding);
}

Binding* CommunicatorBindings::bind(MPI_Comm comm) const {
  if (keyval_ == MPI_KEYVAL_INVALID) return nullptr;
  if (Binding* const begun = find(comm)) return begun;
  std::unique_ptr<Binding> binding(new (std::nothrow) Binding{.engine_run = engine_run()});
  if (binding == nullptr) return nullptr;
  if (library().Comm_set_attr(comm, keyval_, binding.get()) != MPI_SUCCESS) return nullptr;
  return binding.release();
}

// MPI calls it when the communicator goes, be it after the engine's end.
int CommunicatorBindings::unbind(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<Binding> binding(static_cast<Binding*>(value));
  // Release pairs with the acquire in GroupInstances::take_unused.
  if (binding->takes_instance && !binding->engine_run.is_over())
    binding->instance->is_taken.store(false, std::memory_order_release);
  return MPI_SUCCESS;
}

}  // namespace farsum::mpi
