// Finds UCX at run time and never brings in a second one: the library that an MPI library has loaded is the one used.
// It stays loaded until the process ends, for UCX leaves threads' and modules' state behind that must not go away.
#pragma once

#include <memory>
#include <string>

#include "base/status.hpp"

namespace farsum {

struct UcxCalls;

struct UcxVersion {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;

  bool is_at_least(unsigned wanted_major, unsigned wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
};

class UcxLibrary {
 public:
  enum class Origin {
    loaded_before,  // by the program or its MPI library
    named,          // by FARSUM_UCX_LIBRARY
    by_name,        // libucp.so.0, wherever the dynamic linker finds it
  };

  // `named`: the value of FARSUM_UCX_LIBRARY, empty where it is not set; used only if no UCX is loaded yet. Fails with
  // Code::unsupported, saying which library was tried and what would be right. Signal handlers that UCX installs while
  // it is loaded are taken back. Any thread may call.
  static Result<std::unique_ptr<UcxLibrary>> load(const std::string& named);
  ~UcxLibrary();
  UcxLibrary(const UcxLibrary&) = delete;
  UcxLibrary& operator=(const UcxLibrary&) = delete;

  const UcxCalls& calls() const { return *calls_; }
  UcxVersion version() const { return version_; }
  std::string version_text() const;
  Origin origin() const { return origin_; }
  const std::string& file() const { return file_; }

 private:
  UcxLibrary();

  std::unique_ptr<UcxCalls> calls_;
  UcxVersion version_;
  Origin origin_ = Origin::by_name;
  std::string file_;
};

const char* describe(UcxLibrary::Origin origin);

}  // namespace farsum
