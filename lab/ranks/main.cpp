// The ranks of `farsum bench ranks` under an MPI library: rows that grow with the ranks of a node, checked and timed
// one after the other. Prints JSON lines; the cases themselves are in bench/ranks/cases.
#include "common/report.hpp"
#include "common/session.hpp"
#include "mpi_job.hpp"
#include "ranks/cases/measure.hpp"

namespace lab {
namespace {

int run(int argc, char** argv) {
  ranks::RequestOptions options;
  bool json = true;
  CLI::App app("Times of one-sided calls by the ranks of a node, each answer checked first", "lab-ranks-" LAB_ABI);
  options.declare(app);
  app.add_flag("--json", json, "JSON lines, which it prints in any case");
  app.footer("Example: mpirun -n 2 lab-ranks-" LAB_ABI " --cases lock-one/allocate/1,fence/allocate/1");
  if (const auto status = parse_options(app, argc, argv)) return *status;
  const ranks::Request request = options.request();
  const Session session(request.calls_from_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
  const Report report(session, "lab-ranks", true);
  if (options.about) {
    report.measured(Json::object(), {});
    return 0;
  }
  if (request.calls_from_threads && session.provided() < MPI_THREAD_MULTIPLE)
    fail("the library has no MPI_THREAD_MULTIPLE");
  if (session.size() < 2) fail("two ranks are needed: mpirun -n 2 ...");
  ranks::measure_all(MpiJob(session), request, [&](const Json& record) { report.measured(record, {}); });
  return 0;
}

}  // namespace
}  // namespace lab

int main(int argc, char** argv) { return lab::run(argc, argv); }
