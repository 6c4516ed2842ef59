// The ranks of `farsum bench ranks` under an MPI library: rows that grow with the ranks of a node, checked and timed
// one after the other. Prints JSON lines; the cases themselves are in bench/ranks/cases.
#include <string>
#include <variant>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/session.hpp"
#include "mpi_job.hpp"
#include "ranks/cases/measure.hpp"

namespace lab {
namespace {

Record as_told(const ranks::Record& record) {
  Record told;
  for (const auto& [name, value] : record) {
    std::visit([&told, known_as = name](const auto& one) { told.push_back({known_as, one}); }, value);
  }
  return told;
}

int run(int argc, char** argv) {
  ranks::RequestOptions options;
  bool json = true;
  CommandLine line("Times of one-sided calls by the ranks of a node, each answer checked first", "lab-ranks-" LAB_ABI);
  options.declare(line.app());
  line.add_flag("--json", json, "JSON lines, which it prints in any case");
  line.set_footer("Example: mpirun -n 2 lab-ranks-" LAB_ABI " --cases lock-one/allocate/1,fence/allocate/1");
  if (const auto status = line.parse(argc, argv)) return *status;
  const ranks::Request request = options.request();
  const Session session(request.calls_from_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  const Report report(session, "lab-ranks", true);
  if (options.about) {
    report.measured({}, {});
    return 0;
  }
  if (request.calls_from_threads && session.provided() < MPI_THREAD_MULTIPLE)
    fail("the library has no MPI_THREAD_MULTIPLE");
  if (session.size() < 2) fail("two ranks are needed: mpirun -n 2 ...");
  ranks::measure_all(MpiJob(session), request,
                     [&](const ranks::Record& record) { report.measured(as_told(record), {}); });
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
