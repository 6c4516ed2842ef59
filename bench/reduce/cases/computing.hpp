// Arithmetic that takes a given time: what a program computes while a call is under way. It needs no memory, so that
// what slows it down is a processor that others have.
#pragma once

namespace collectives {

class Computing {
 public:
  // Finds out how much of it takes so long here. All ranks do it at once, for they compute at once later.
  explicit Computing(double us);

  void run() const;

 private:
  long steps_ = 0;
};

}  // namespace collectives
