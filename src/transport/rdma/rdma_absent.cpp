// Stands for rdma.cpp in a build that found no headers of UCX.
#include "transport/rdma.hpp"

namespace farsum {

Result<std::unique_ptr<Rdma>> open_rdma(const RdmaOptions&, const Settings&) {
  return Status(Code::unsupported,
                "memory that network cards reach by themselves needs UCX, and this build found no headers of it "
                "(Debian: libucx-dev); install them and build again");
}

}  // namespace farsum
