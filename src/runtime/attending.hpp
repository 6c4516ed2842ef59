// A thread that attends to the network in the agent's stead, and goes on with what is carried meanwhile.
#pragma once

#include <cstdint>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "progress/attendance.hpp"
#include "runtime/carries.hpp"
#include "transport/shm/shm_transport.hpp"

namespace farsum {

// As of Attendance; refused, too, where the agent never sleeps. Any thread may call.
class Attending {
 public:
  struct Parts {
    Attendance& attendance;
    Carries& carries;
    ShmTransport& transport;
    std::uint32_t my_place = 0;
    AgentMode agent = AgentMode::sleep;
  };
  explicit Attending(const Parts& parts) : parts_(parts) {}

  Status begin();
  bool attend();
  void end();

 private:
  void go_on_carrying();

  Parts parts_;
};

}  // namespace farsum
