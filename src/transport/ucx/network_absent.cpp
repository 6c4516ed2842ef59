// Stands for network.cpp in a build that found no headers of UCX.
#include "transport/network.hpp"

namespace farsum {

Result<std::unique_ptr<Network>> open_network(const NetworkOptions&, const Settings&) {
  return Status(Code::unsupported,
                "windows across hosts need UCX, and this build found no headers of it (Debian: libucx-dev); install "
                "them and build again");
}

}  // namespace farsum
