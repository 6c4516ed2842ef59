// Stands for pmix_client.cpp where PMIx's headers were missing when Farsum was built.
#include "runtime/pmix.hpp"

namespace farsum {

std::string describe_pmix(const Settings&) { return "not built in: the headers of PMIx were missing (libpmix-dev)"; }

Result<std::unique_ptr<Pmix>> open_pmix(const Settings& settings) {
  return Status(Code::unsupported, "farsum_init: a PMIx launcher started this rank, but PMIx is " +
                                       describe_pmix(settings) + "; start the program with farsum run");
}

}  // namespace farsum
