// Where there is no memory of a kind that has a name: what is thrown for it says which, and is a std::bad_alloc to all
// who do not ask.
#pragma once

#include <new>

namespace farsum {

class NoRoom : public std::bad_alloc {
 public:
  // `what` lives for ever, and says what to do, too.
  explicit NoRoom(const char* what) : what_(what) {}
  const char* what() const noexcept override { return what_; }

 private:
  const char* what_;
};

}  // namespace farsum
