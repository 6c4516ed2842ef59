#include "transport/ucx/ucx_context.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "os/blocked_signals.hpp"
#include "transport/ucx/ucx_calls.hpp"
#include "transport/ucx/ucx_library.hpp"
#include "transport/ucx/ucx_printed.hpp"

namespace farsum {
namespace {

// Variables FARSUM_NET_UCX_* reach UCX. They are for whoever looks for a fault; FARSUM_UCX_LIBRARY must not begin so,
// or UCX would complain of a variable that it does not know.
constexpr const char* prefix = "FARSUM_NET";

struct Key {
  const char* name;
  std::string value;
  const char* newer_name = nullptr;  // for versions that refuse the other
  bool may_be_unknown = false;
};

bool is_within_a_machine(std::string_view transport) {
  constexpr std::array<std::string_view, 5> within = {"posix", "sysv", "self", "cma", "knem"};
  return std::find(within.begin(), within.end(), transport) != within.end();
}

bool all_are_within_a_machine(std::string_view transports) {
  for (std::size_t begin = 0; begin <= transports.size();) {
    const std::size_t end = std::min(transports.find(',', begin), transports.size());
    const std::string_view name = transports.substr(begin, end - begin);
    if (!is_within_a_machine(name)) return false;
    begin = end + 1;
  }
  return true;
}

// A prefix of one's own does not keep a job's UCX_* away: UCX reads those first. What decides whether Farsum's messages
// travel as they are meant to is therefore set here, whatever the job says.
std::vector<Key> keys_for_messages(const UcxOptions& options) {
  std::vector<Key> keys = {
      {"TLS", options.transports},   {"NET_DEVICES", options.devices},
      {"RNDV_THRESH", "inf"},         // a message is applied from UCX's buffer as it comes; none asks for a second trip
      {"ZCOPY_THRESH", "8192"},       // with "auto", 1.20 cuts what is above 16515 bytes into copied fragments
      {"MAX_EAGER_LANES", "1"},       // order on the wire is order of posting
      {"KEEPALIVE_INTERVAL", "inf"},  // finds no dead peer over TCP, but wakes everybody
      {"ADDRESS_VERSION", "v1"},
  };
  // Otherwise UCX polls shared memory only once its own thread has seen the first message, which may be never while
  // another thread keeps polling.
  if (all_are_within_a_machine(options.transports)) keys.push_back({"ADAPTIVE_PROGRESS", "n", nullptr, true});
  return keys;
}

// A word has one that updates it: all cards, or all processors of the machine. UCX's own choice may differ from rank to
// rank.
std::vector<Key> keys_for_memory(const UcxOptions& options, UcxVersion version) {
  std::vector<Key> keys = {
      {"TLS", options.transports},
      {"NET_DEVICES", options.devices},
      {"ATOMIC_MODE", all_are_within_a_machine(options.transports) ? "cpu" : "device"},
      {"KEEPALIVE_INTERVAL", "inf"},
      {"ADDRESS_VERSION", "v1"},
  };
  // Over one lane a fence costs nothing. 1.13 has no more, and warns of the key.
  if (version.is_at_least(1, 16)) keys.push_back({"MAX_RMA_LANES", "1", nullptr, true});
  // A get that follows writes has to push them on to where the owner's loads see them.
  if (options.is_infiniband) keys.push_back({"PCI_RELAXED_ORDERING", "n", "IB_PCI_RELAXED_ORDERING", true});
  return keys;
}

// UCX has two sets of protocols. With the newer one 1.20 takes longer to connect, because it reads /proc/net/route
// again and again; it has the owner's program do every get within a machine, and chooses by size what the lanes do not
// tell.
std::vector<Key> keys_for_any_use(UcxVersion version) {
  if (!version.is_at_least(1, 16)) return {};
  return {{"PROTO_ENABLE", "n", nullptr, true}};
}

// Keys of one transport. UCX warns of those that no device took. 1.13 knows them without the transport's name, and 1.20
// only with it.
std::vector<Key> transport_keys(const UcxOptions& options) {
  const bool excludes = options.transports.starts_with('^');
  const auto names = [&](const char* transport) {
    return !excludes && options.transports.find(transport) != std::string::npos;
  };
  std::vector<Key> keys;
  if (excludes || names("tcp")) {
    keys.push_back({"RX_SEG_SIZE", std::to_string(tcp_segment_bytes), "TCP_RX_SEG_SIZE"});
    // Else whoever connects to a host that does not answer sits in connect() for minutes.
    keys.push_back({"CONN_NB", "y", "TCP_CONN_NB"});
  }
  if (names("posix") && options.use == UcxUse::messages)
    keys.push_back({"SEG_SIZE", std::to_string(memory_segment_bytes), "POSIX_SEG_SIZE"});
  return keys;
}

Status failure(const UcxCalls& calls, const UcxOptions& options, const std::string& what, ucs_status_t status) {
  return {Code::system,
          fmt::format("UCX: {} with transports '{}' (FARSUM_NET_TLS) over devices '{}' (FARSUM_NET_DEVICES) failed: {}",
                      what, options.transports, options.devices, calls.status_string(status))};
}

Status configure(const UcxCalls& calls, UcxVersion version, const UcxOptions& options, ucp_config_t* config) {
  std::vector<Key> keys =
      options.use == UcxUse::messages ? keys_for_messages(options) : keys_for_memory(options, version);
  for (Key& key : keys_for_any_use(version)) keys.push_back(std::move(key));
  for (Key& key : transport_keys(options)) keys.push_back(std::move(key));
  for (const Key& key : keys) {
    ucs_status_t status = calls.config_modify(config, key.name, key.value.c_str());
    if (status != UCS_OK && key.newer_name != nullptr) {
      status = calls.config_modify(config, key.newer_name, key.value.c_str());
    }
    if (status != UCS_OK && !key.may_be_unknown)
      return failure(calls, options, fmt::format("setting {} to {}", key.name, key.value), status);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<UcxContext>> UcxContext::create(const UcxLibrary& library, const UcxOptions& options) {
  const UcxCalls& calls = library.calls();
  const os::BlockedSignals blocked;  // UCX may start a thread, which must not take the program's signals
  ucp_config_t* config = nullptr;
  ucs_status_t status = calls.config_read(prefix, nullptr, &config);
  if (status != UCS_OK) return failure(calls, options, "reading its configuration", status);
  const std::unique_ptr<ucp_config_t, decltype(calls.config_release)> owned(config, calls.config_release);
  if (Status refused = configure(calls, library.version(), options, config); !refused.is_ok()) return refused;

  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  parameters.features =
      UCP_FEATURE_WAKEUP | (options.use == UcxUse::messages ? UCP_FEATURE_AM : UCP_FEATURE_RMA | UCP_FEATURE_AMO64);
  if (options.use == UcxUse::memory && options.short_words) parameters.features |= UCP_FEATURE_AMO32;
  parameters.mt_workers_shared = 1;  // the origin's worker and the target's are driven by different threads
  parameters.name = "farsum";
  ucp_context_h handle = nullptr;
  status = calls.init_version(1, 11, &parameters, config, &handle);
  if (status != UCS_OK) return failure(calls, options, "making a context", status);
  std::unique_ptr<UcxContext> context(new UcxContext(calls, handle));
  context->ends_unfinished_workers_ = library.version().is_at_least(1, 14);
  context->resources_ = resources_in(printed_by([&](std::FILE* stream) { calls.context_print_info(handle, stream); }));
  return context;
}

UcxContext::~UcxContext() {
  if (!is_left_) calls_.cleanup(handle_);
}

std::size_t UcxContext::piece_bytes() const {
  std::size_t least = piece_bytes_of("tcp");
  for (const UcxResource& resource : resources_) least = std::min(least, piece_bytes_of(resource.transport));
  return least;
}

bool UcxContext::stays_within_a_machine() const {
  return std::all_of(resources_.begin(), resources_.end(),
                     [](const UcxResource& resource) { return is_within_a_machine(resource.transport); });
}

std::vector<std::string> UcxContext::devices() const {
  std::vector<std::string> found;
  for (const UcxResource& resource : resources_) {
    if (is_within_a_machine(resource.transport)) continue;
    if (std::find(found.begin(), found.end(), resource.device) == found.end()) found.push_back(resource.device);
  }
  return found;
}

bool UcxContext::has_infiniband() const {
  return std::any_of(resources_.begin(), resources_.end(), [](const UcxResource& resource) {
    const std::string& transport = resource.transport;
    return transport.starts_with("rc_") || transport.starts_with("dc_") || transport.starts_with("ud_");
  });
}

std::string UcxContext::description() const {
  std::string text;
  for (const UcxResource& resource : resources_) {
    text += fmt::format("{}{}/{}", text.empty() ? "" : ", ", resource.transport, resource.device);
  }
  return text;
}

bool UcxContext::tells_of_failures() const {
  return std::none_of(resources_.begin(), resources_.end(), [](const UcxResource& resource) {
    return resource.transport == "posix" || resource.transport == "sysv" || resource.transport == "self";
  });
}

}  // namespace farsum
