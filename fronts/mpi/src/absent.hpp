// The table of calls names its parameters alike everywhere, so that code made from it can use them by name.
#pragma once

namespace farsum::mpi {

// Stands for a parameter that a call does not have: whoever expands the table declares a constant of this type for each
// name that it uses, which the parameters of the calls that have them hide.
struct Absent {};

}  // namespace farsum::mpi
