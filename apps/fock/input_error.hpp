// The one exception for what the user gave: its text is a whole sentence, shown by main, which then exits with 2.
#pragma once

#include <stdexcept>

namespace fock {

class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fock
