// The ways to carry out random read-modify-write updates that paper 4 (Santhanaraman et al., 2008) compares.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "stream.hpp"

namespace lab {

enum class Operator : int { bxor, sum };

inline Word combine(Operator op, Word left, Word right) { return op == Operator::bxor ? left ^ right : left + right; }
inline MPI_Op mpi_op(Operator op) { return op == Operator::bxor ? MPI_BXOR : MPI_SUM; }

// How updates that are gathered become one datatype.
enum class Gathering : int { indexed_block, structure };

struct UpdateContext {
  MPI_Win win;
  Word* local;  // this rank's part of the table
  Layout layout;
  Operator op;
  int depth;  // updates that may wait at a rank; the benchmark's rules allow 1024
  Gathering gathering;
};

// Sends updates out. begin and finish are collective; after finish all updates of all ranks are in the table.
class Updater {
 public:
  explicit Updater(const UpdateContext& context) : context_(context) {}
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;
  virtual ~Updater() = default;

  virtual void begin() {}
  virtual void update(Word random) = 0;
  virtual void finish() = 0;

 protected:
  [[nodiscard]] const UpdateContext& context() const { return context_; }

 private:
  UpdateContext context_;
};

struct Mode {
  const char* name;
  bool exact;  // false: updates may be lost, and the benchmark allows one in a hundred
  std::unique_ptr<Updater> (*make)(const UpdateContext&);
};

const std::vector<Mode>& modes();

// Why the paper and we leave out accumulates between two fences.
extern const char* const why_no_fence;

}  // namespace lab
