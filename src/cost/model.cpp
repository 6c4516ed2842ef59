#include "cost/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace farsum::cost {
namespace {

constexpr std::array table = {
    Parameter{"send_us", "us", &LinkModel::send_us, "the origin's time for a message (o of the sender)"},
    Parameter{"receive_us", "us", &LinkModel::receive_us, "the agent's time for a message and its answer"},
    Parameter{"gap_us", "us", &LinkModel::gap_us, "least time between two messages of a stream (g)"},
    Parameter{"per_byte_us", "us/B", &LinkModel::per_byte_us, "of an operand in a message (G)"},
    Parameter{"back_per_byte_us", "us/B", &LinkModel::back_per_byte_us, "of a result on its way back"},
    Parameter{"latency_us", "us", &LinkModel::latency_us, "one way (L)"},
    Parameter{"wake_up_us", "us", &LinkModel::wake_up_us, "until a sleeping agent runs"},
    Parameter{"inline_bytes", "B", &LinkModel::inline_bytes, "the longest operand that rides in its message"},
    Parameter{"pull_us", "us", &LinkModel::pull_us, "once, for a longer one"},
    Parameter{"pull_per_byte_us", "us/B", &LinkModel::pull_per_byte_us, "of a longer one"},
    Parameter{"pull_round_trips", "", &LinkModel::pull_round_trips, "of the link, for a longer one"},
    Parameter{"pull_wake_ups", "", &LinkModel::pull_wake_ups, "of the agent, for a longer one"},
    Parameter{"gather_us", "us", &LinkModel::gather_us, "putting one update beside others (aggregated)"},
    Parameter{"gathered_us", "us", &LinkModel::gathered_us, "the agent's time for one of them"},
    Parameter{"gathered_bytes", "B", &LinkModel::gathered_bytes, "what one takes up in the message"},
    Parameter{"bundled_bytes", "B", &LinkModel::bundled_bytes, "the longest sum that shares a message by itself"},
    Parameter{"bundled_us", "us", &LinkModel::bundled_us, "the origin's time for one of them"},
    Parameter{"caller_round_trips", "", &LinkModel::caller_round_trips, "of caller-computes between hosts"},
    Parameter{"caller_wake_ups", "", &LinkModel::caller_wake_ups, "of the agent in these"},
    Parameter{"direct_us", "us", &LinkModel::direct_us, "a put or get of mapped memory, and its flush"},
    Parameter{"move_per_byte_us", "us/B", &LinkModel::move_per_byte_us, "mapped memory moved by the processor"},
    Parameter{"copy_us", "us", &LinkModel::copy_us, "a call of the kernel that copies between processes"},
    Parameter{"copy_per_byte_us", "us/B", &LinkModel::copy_per_byte_us, "what it copies"},
    Parameter{"lock_us", "us", &LinkModel::lock_us, "a stripe's lock, taken and given back"},
    Parameter{"contended_us", "us", &LinkModel::contended_us, "more, where another has just had it"},
    Parameter{"reduce_per_byte_us", "us/B", &LinkModel::reduce_per_byte_us, "operator and stores, at the origin"},
    Parameter{"owner_reduce_per_byte_us", "us/B", &LinkModel::owner_reduce_per_byte_us, "the same by the agent"},
};

// The machine and the runs that these are from: docs/notes/model.md.
constexpr LinkModel node_defaults = {
    .send_us = 0.25,
    .receive_us = 0.25,
    .gap_us = 0.45,
    .per_byte_us = 6e-5,
    .back_per_byte_us = 6e-5,
    .latency_us = 0.15,
    .wake_up_us = 2.0,
    .inline_bytes = 8192,
    .pull_us = 0.4,
    .pull_per_byte_us = 3e-5,
    .gather_us = 0.03,
    .gathered_us = 0.02,
    .gathered_bytes = 16,
    .direct_us = 0.008,
    .move_per_byte_us = 2e-5,
    .copy_us = 0.5,
    .copy_per_byte_us = 3e-5,
    .lock_us = 0.01,
    .contended_us = 0.05,
    .reduce_per_byte_us = 2e-5,
    .owner_reduce_per_byte_us = 2e-5,
};

// Memory and its locks are as on a node.
constexpr LinkModel over_tcp(LinkModel model) {
  model.send_us = 0.7;
  model.receive_us = 0.5;
  model.gap_us = 0.7;
  model.per_byte_us = 1.6e-4;
  model.back_per_byte_us = 1.6e-4;
  model.latency_us = 3.0;
  model.wake_up_us = 7.0;
  model.pull_us = 0;
  model.pull_per_byte_us = 1.6e-4;
  model.bundled_bytes = 32;
  model.bundled_us = 0.09;
  model.caller_round_trips = 2;
  model.caller_wake_ups = 2;
  return model;
}
constexpr LinkModel tcp_defaults = over_tcp(node_defaults);

bool reduces(Kind kind) { return kind == Kind::accumulate || kind == Kind::get_accumulate; }
bool brings(Kind kind) { return kind != Kind::get; }
bool returns(Kind kind) { return kind == Kind::get || kind == Kind::get_accumulate; }

double stripes(std::uint64_t bytes) {
  return static_cast<double>(std::max<std::uint64_t>(1, (bytes + stripe_bytes - 1) / stripe_bytes));
}

// An operation's time when alone, and the part of it that no two operations on the same memory can have at once.
struct Time {
  double alone_us = 0;
  double serial_us = 0;
};

// `copies` of the bytes between two processes: a put or get is one, a sum two for each stripe.
double copied_us(const LinkModel& model, Kind kind, double bytes, double pieces) {
  const double copies = reduces(kind) ? 2 : 1;
  return copies * ((reduces(kind) ? pieces : 1) * model.copy_us + bytes * model.copy_per_byte_us);
}

Time direct(const LinkModel& model, const Work& work) {
  const auto bytes = static_cast<double>(work.bytes);
  if (!reduces(work.kind)) return {model.direct_us + bytes * model.move_per_byte_us, 0};
  const double held =
      bytes * (model.reduce_per_byte_us + (returns(work.kind) ? model.move_per_byte_us : 0)) + model.lock_us;
  return {model.direct_us + held + (stripes(work.bytes) - 1) * model.lock_us, held / stripes(work.bytes)};
}

Time attach(const LinkModel& model, const Work& work) {
  const auto bytes = static_cast<double>(work.bytes);
  const double copied = copied_us(model, work.kind, bytes, stripes(work.bytes));
  if (!reduces(work.kind)) return {copied, 0};
  const double held = copied + stripes(work.bytes) * model.lock_us +
                      bytes * (model.reduce_per_byte_us + (returns(work.kind) ? model.move_per_byte_us : 0));
  return {held, held / stripes(work.bytes)};
}

Time caller_on_node(const LinkModel& model, const Work& work) {
  if (work.guarded) return attach(model, work);
  const auto bytes = static_cast<double>(work.bytes);
  const double moved = bytes * model.move_per_byte_us;
  if (!reduces(work.kind)) return {model.direct_us + moved, 0};
  const double held = stripes(work.bytes) * model.lock_us + 2 * moved + bytes * model.reduce_per_byte_us;
  return {model.direct_us + held, held / stripes(work.bytes)};
}

// The agent's own time for the bytes of one operation.
double agent_us(const LinkModel& model, Kind kind, std::uint64_t count, bool guarded) {
  const auto bytes = static_cast<double>(count);
  const double touched = guarded ? copied_us(model, kind, bytes, stripes(count)) : bytes * model.move_per_byte_us;
  return touched + (reduces(kind) ? stripes(count) * model.lock_us + bytes * model.owner_reduce_per_byte_us : 0);
}

double carried_us(const LinkModel& model, Kind kind, double bytes) {
  const bool long_operand = brings(kind) && bytes > model.inline_bytes;
  double us = 0;
  if (brings(kind)) us += bytes * (long_operand ? model.pull_per_byte_us : model.per_byte_us);
  if (long_operand) {
    us += model.pull_us + model.pull_round_trips * 2 * model.latency_us + model.pull_wake_ups * model.wake_up_us;
  }
  if (returns(kind)) us += bytes * model.back_per_byte_us;
  return us;
}

double message_us(const LinkModel& model) { return model.send_us + 2 * model.latency_us + model.wake_up_us; }

// Updates that share a message: each costs its origin `put_us`.
Time shared_message(const LinkModel& model, const Work& work, double put_us) {
  const double served = model.gathered_us + agent_us(model, work.kind, work.bytes, work.guarded);
  const double each = put_us + served + model.gathered_bytes * model.per_byte_us;
  return {each + (message_us(model) + model.receive_us) / work.burst, served};
}

Time owner(const LinkModel& model, const Work& work) {
  if (work.burst > 1 && work.kind == Kind::accumulate && static_cast<double>(work.bytes) <= model.bundled_bytes)
    return shared_message(model, work, model.bundled_us);
  const double carried = carried_us(model, work.kind, static_cast<double>(work.bytes));
  const double served = model.receive_us + agent_us(model, work.kind, work.bytes, work.guarded);
  const double first = message_us(model) + carried + served;
  // Behind the first one the agent is awake, and whoever is slowest sets the pace.
  const double next = std::max({model.gap_us, model.send_us, served}) + carried;
  return {(first + (work.burst - 1) * next) / work.burst, served};
}

// Between hosts, with the owner's memory touched by its agent, once for the get and once for the put.
Time caller_between_hosts(const LinkModel& model, const Work& work) {
  if (!reduces(work.kind)) return owner(model, work);
  const auto bytes = static_cast<double>(work.bytes);
  const double trips = model.caller_round_trips * (model.send_us + 2 * model.latency_us + model.receive_us) +
                       model.caller_wake_ups * model.wake_up_us;
  // A message longer than inline_bytes is cut, not asked for: no pull.
  const double per_byte = bytes > model.inline_bytes ? model.pull_per_byte_us : model.per_byte_us;
  const double both_ways = bytes * (per_byte + model.back_per_byte_us);
  const double touched =
      agent_us(model, Kind::get, work.bytes, work.guarded) + agent_us(model, Kind::put, work.bytes, work.guarded);
  const double all = trips + both_ways + touched + bytes * model.reduce_per_byte_us;
  // Whoever comes in between makes it start anew, so that nobody else may.
  return {all, all};
}

Time aggregated(const LinkModel& model, const Work& work) {
  if (work.kind != Kind::accumulate || work.bytes > 16) return owner(model, work);
  return shared_message(model, work, model.gather_us);
}

Time time_of(const LinkModel& model, LinkClass link, Way way, const Work& work) {
  switch (way) {
    case Way::direct:
      return direct(model, work);
    case Way::attach:
      return attach(model, work);
    case Way::caller:
      return link == LinkClass::node ? caller_on_node(model, work) : caller_between_hosts(model, work);
    case Way::owner:
      return owner(model, work);
    case Way::aggregated:
      return aggregated(model, work);
  }
  return {};
}

constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;

}  // namespace

const char* name_of(LinkClass link) {
  switch (link) {
    case LinkClass::node:
      return "node";
    case LinkClass::tcp:
      return "tcp";
  }
  return "unknown";
}

const char* name_of(Way way) {
  switch (way) {
    case Way::direct:
      return "direct";
    case Way::attach:
      return "attach";
    case Way::caller:
      return "caller";
    case Way::owner:
      return "owner";
    case Way::aggregated:
      return "aggregated";
  }
  return "unknown";
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::put:
      return "put";
    case Kind::get:
      return "get";
    case Kind::accumulate:
      return "accumulate";
    case Kind::get_accumulate:
      return "get_accumulate";
  }
  return "unknown";
}

std::span<const Parameter> parameters() { return table; }

const LinkModel& defaults(LinkClass link) {
  switch (link) {
    case LinkClass::node:
      return node_defaults;
    case LinkClass::tcp:
      return tcp_defaults;
  }
  return node_defaults;
}

double predict(const LinkModel& model, LinkClass link, Way way, const Work& work) {
  const Time time = time_of(model, link, way, work);
  if (work.contenders <= 1 || time.serial_us == 0) return time.alone_us;
  return std::max(time.alone_us + model.contended_us, work.contenders * (time.serial_us + model.contended_us));
}

Way choose(const LinkModel& model, LinkClass link, std::span<const Way> possible, const Work& work) {
  return *std::min_element(possible.begin(), possible.end(), [&](Way one, Way other) {
    return predict(model, link, one, work) < predict(model, link, other, work);
  });
}

Way choose_for_sizes(const LinkModel& model, LinkClass link, std::span<const Way> possible, Work work,
                     std::uint64_t from, std::uint64_t to) {
  const auto mean = [&](Way way) {
    double sum = 0;
    for (std::uint64_t bytes = from; bytes <= to; bytes *= 2) {
      Work sized = work;
      sized.bytes = bytes;
      sum += std::log(predict(model, link, way, sized));
    }
    return sum;
  };
  return *std::min_element(possible.begin(), possible.end(),
                           [&](Way one, Way other) { return mean(one) < mean(other); });
}

std::uint64_t cheaper_from(const LinkModel& model, LinkClass link, Way way, Way other, Work work) {
  const auto is_cheaper = [&](std::uint64_t bytes) {
    work.bytes = bytes;
    return predict(model, link, way, work) < predict(model, link, other, work);
  };
  if (!is_cheaper(most_bytes)) return never;
  std::uint64_t cheaper = most_bytes;
  std::uint64_t dearer = 0;
  for (std::uint64_t bytes = most_bytes; bytes >= 8; bytes /= 2) {
    if (is_cheaper(bytes)) {
      cheaper = bytes;
      continue;
    }
    dearer = bytes;
    break;
  }
  if (dearer == 0) return 0;
  while (cheaper - dearer > 8) {
    const std::uint64_t middle = dearer + (cheaper - dearer) / 2;
    (is_cheaper(middle) ? cheaper : dearer) = middle;
  }
  return cheaper;
}

Thresholds thresholds(const LinkModel& node, const LinkModel& network) {
  Thresholds chosen;
  chosen.caller_from_bytes = cheaper_from(network, LinkClass::tcp, Way::caller, Way::owner, {.kind = Kind::accumulate});
  // What is gathered loses nothing alone and gains in a burst; a gain that is within the model's error is none.
  const auto between_hosts = [&](Way way) {
    return predict(network, LinkClass::tcp, way, {.kind = Kind::accumulate, .burst = 64});
  };
  chosen.aggregates = between_hosts(Way::aggregated) < 0.9 * between_hosts(Way::owner);
  constexpr std::array user = {Way::attach, Way::owner};
  chosen.user_bulk = choose_for_sizes(node, LinkClass::node, user, {.kind = Kind::accumulate, .guarded = true}, 64,
                                      std::uint64_t{1} << 20);
  chosen.user_single = choose(node, LinkClass::node, user, {.kind = Kind::get_accumulate, .guarded = true});
  return chosen;
}

Way chosen(const Thresholds& thresholds, LinkClass link, const Work& work, bool single) {
  if (link == LinkClass::node) {
    if (!work.guarded) return Way::direct;
    return single && reduces(work.kind) ? thresholds.user_single : thresholds.user_bulk;
  }
  return Way::owner;
}

}  // namespace farsum::cost
