// What communicators remember, in a library with one key and one communicator.
#include "communicator_bindings.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

namespace farsum::mpi {
namespace {

MPI_Comm_delete_attr_function* unbind;
void* state_of_key;
void* attribute;
int keys;

int create_key(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function* deleted, int* keyval, void* state) {
  unbind = deleted;
  state_of_key = state;
  *keyval = ++keys;
  return MPI_SUCCESS;
}

int free_key(int* keyval) {
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}

int set_attribute(MPI_Comm, int, void* value) {
  attribute = value;
  return MPI_SUCCESS;
}

int get_attribute(MPI_Comm, int, void* value, int* is_there) {
  *is_there = attribute != nullptr ? 1 : 0;
  std::memcpy(value, static_cast<void*>(&attribute), sizeof attribute);
  return MPI_SUCCESS;
}

void free_communicator() {
  if (attribute != nullptr) unbind(MPI_COMM_SELF, keys, std::exchange(attribute, nullptr), state_of_key);
}

class CommunicatorBindingsOfALibrary : public testing::Test {
 protected:
  CommunicatorBindingsOfALibrary() : library_before_(the_library) {
    the_library.Comm_create_keyval = create_key;
    the_library.Comm_free_keyval = free_key;
    the_library.Comm_set_attr = set_attribute;
    the_library.Comm_get_attr = get_attribute;
    attribute = nullptr;
  }
  ~CommunicatorBindingsOfALibrary() override {
    free_communicator();
    the_library = library_before_;
  }

  // Bound to the instance, as by a rank that chose it for the communicator's life.
  void take(GroupInstance& instance) {
    Binding* const binding = bindings_.bind(MPI_COMM_SELF);
    ASSERT_NE(binding, nullptr);
    binding->instance = &instance;
    binding->takes_instance = true;
    instance.is_taken.store(true, std::memory_order_relaxed);
  }

  farsum_mpi_library library_before_;
  CommunicatorBindings bindings_;
};

TEST_F(CommunicatorBindingsOfALibrary, are_none_before_they_are_opened_and_after_they_are_closed) {
  EXPECT_EQ(bindings_.bind(MPI_COMM_SELF), nullptr);
  ASSERT_TRUE(bindings_.open());
  EXPECT_EQ(bindings_.find(MPI_COMM_SELF), nullptr);
  EXPECT_NE(bindings_.bind(MPI_COMM_SELF), nullptr);
  EXPECT_NE(bindings_.find(MPI_COMM_SELF), nullptr);
  bindings_.close();
  EXPECT_EQ(bindings_.find(MPI_COMM_SELF), nullptr);
}

TEST_F(CommunicatorBindingsOfALibrary, are_one_for_each_communicator) {
  ASSERT_TRUE(bindings_.open());
  Binding* const binding = bindings_.bind(MPI_COMM_SELF);
  EXPECT_EQ(binding->instance, nullptr);
  EXPECT_EQ(bindings_.bind(MPI_COMM_SELF), binding);
}

TEST_F(CommunicatorBindingsOfALibrary, give_the_instance_back_when_the_communicator_goes) {
  ASSERT_TRUE(bindings_.open());
  GroupInstance instance;
  take(instance);
  free_communicator();
  EXPECT_FALSE(instance.is_taken.load(std::memory_order_relaxed));
}

TEST_F(CommunicatorBindingsOfALibrary, do_not_touch_an_instance_of_an_engine_that_has_ended) {
  ASSERT_TRUE(bindings_.open());
  GroupInstance instance;
  take(instance);
  bindings_.forget();
  free_communicator();
  EXPECT_TRUE(instance.is_taken.load(std::memory_order_relaxed));
}

// Leaving is refused here, for no engine runs, and the sentence of that tells that it was tried.
TEST_F(CommunicatorBindingsOfALibrary, leave_a_group_of_their_own_unless_its_engine_has_ended) {
  ASSERT_TRUE(bindings_.open());
  for (const bool has_ended : {true, false}) {
    static_cast<void>(farsum_barrier({}));
    Binding* const binding = bindings_.bind(MPI_COMM_SELF);
    binding->own = std::make_shared<OwnGroup>(bindings_.engine_run());
    binding->own->made = true;
    if (has_ended) bindings_.forget();
    free_communicator();
    const bool has_left = std::string(farsum_last_error()).starts_with("farsum_group_leave");
    EXPECT_EQ(has_left, !has_ended) << farsum_last_error();
  }
}

}  // namespace
}  // namespace farsum::mpi
