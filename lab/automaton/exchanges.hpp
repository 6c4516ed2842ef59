// The ways in which a rank's first and last rows reach its two neighbours while it computes the rows between.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "common/window.hpp"
#include "field.hpp"

namespace lab {

// The ring of ranks. Above is the rank whose rows come before; with one or two ranks the two are the same one.
struct Neighbours {
  int above;
  int below;
};

// Used from begin to end of every step: begin sends the rows, end returns when the neighbours' are here.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual void begin(const Field& field) = 0;
  virtual void end() = 0;
  // The rows that end brought; they stay until the next end.
  [[nodiscard]] virtual const Cell* from_above() const = 0;
  [[nodiscard]] virtual const Cell* from_below() const = 0;
};

const std::vector<std::string>& exchange_names();
// Collective, as is the destruction. The first, "two-sided", needs no window.
std::unique_ptr<Exchange> make_exchange(const std::string& name, MemoryKind memory, std::size_t width,
                                        Neighbours neighbours);

}  // namespace lab
