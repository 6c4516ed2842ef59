// Whether the process has bindings of the library's for other languages than C. Fortran's and C++'s set attributes by
// functions that no C program sees.
#pragma once

#include <string_view>

namespace farsum::mpi {

// By the name of an object's file.
bool is_of_other_bindings(std::string_view path);

// One thread at a time.
class OtherBindings {
 public:
  // Looks at the objects of the process where any was loaded since it looked last.
  bool are_loaded();

 private:
  unsigned long long loads_ = 0;  // of the process, when it looked last; 0: never
  bool were_loaded_ = false;
};

}  // namespace farsum::mpi
