// The ranks of `farsum bench reduce` under an MPI library: collective calls, each answer checked before it is timed.
// Prints JSON lines; what the calls are is in bench/reduce/cases.
#include <string>

#include "common/command_line.hpp"
#include "common/report.hpp"
#include "common/session.hpp"
#include "mpi_job.hpp"
#include "reduce/cases/measure_all.hpp"

namespace lab {
namespace {

int run(int argc, char** argv) {
  collectives::Request request;
  bool json = true;
  CommandLine line("Times of collective calls, each answer checked first", "lab-reduce-" LAB_ABI);
  request.declare(line.app());
  line.add_flag("--json", json, "JSON lines, which it prints in any case");
  line.set_footer("Example: mpirun -n 2 lab-reduce-" LAB_ABI " --calls allreduce/8,barrier");
  if (const auto status = line.parse(argc, argv)) return *status;
  // Before MPI may start a thread.
  const std::string reason = request.take_priority();
  const Session session(MPI_THREAD_SINGLE);
  if (!reason.empty()) fail("{}", reason);
  const Report report(session, "lab-reduce", true);
  if (request.about) report.measured({}, {});
  collectives::measure_all(
      MpiJob(session), request,
      [&](const collectives::Call& call) {
        report.measured({{"begin", call.name()}}, {});
      },
      [&](const collectives::Call& call, const collectives::Figures& figures) {
        Record record{{"call", call.name()}};
        for (const auto& [name, value] : figures) record.push_back({name, value});
        report.measured(record, {});
      });
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
