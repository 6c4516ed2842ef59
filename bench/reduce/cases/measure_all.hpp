// Does what a request asks for, the same way whoever makes the calls.
#pragma once

#include <vector>

#include "reduce/cases/call.hpp"
#include "reduce/cases/measure.hpp"
#include "reduce/cases/overlap.hpp"
#include "reduce/cases/steady.hpp"

namespace collectives {

template <class Job>
std::vector<Figures> measure_one(const Job& job, const Request& request, const Call& call) {
  switch (request.way) {
    case Way::in_a_row: {
      Measurement<Job> measurement(job, call);
      measurement.check();
      return {measurement.time(request.seconds)};
    }
    case Way::overlap:
      return {Overlap<Job>(job, call).measure(request.seconds)};
    case Way::middle:
      return {Middle<Job>(job, call).measure(request.seconds)};
    case Way::steady:
      return steadiness_figures(Steadiness<Job>(job, call).measure(request.seconds, request.most_calls));
  }
  return {};
}

// `begin(call)`, and `tell(call, figures)` once or more often, are called on all ranks.
template <class Job, class Begin, class Tell>
void measure_all(const Job& job, const Request& request, Begin&& begin, Tell&& tell) {
  for (const Call& call : request.calls()) {
    begin(call);
    for (const Figures& figures : measure_one(job, request, call)) tell(call, figures);
  }
}

}  // namespace collectives
