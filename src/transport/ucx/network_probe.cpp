#include "transport/ucx/network_probe.hpp"

#include <memory>

#include "transport/ucx/ucx_context.hpp"
#include "transport/ucx/ucx_library.hpp"
#include "transport/ucx/ucx_transport.hpp"
#include "transport/ucx/ucx_worker.hpp"

namespace farsum {
namespace {

class Unheard final : public UcxWorker::Events {
 public:
  void on_message(unsigned, std::span<const std::byte>) override {}
  void on_sent(UcxWorker::Endpoint, std::uint64_t, bool) override {}
  void on_broken(UcxWorker::Endpoint) override {}
  void on_closed(UcxWorker::Endpoint) override {}
};

Status look(const UcxLibrary& library, const UcxOptions& options, NetworkProbe& probe) {
  auto context = UcxContext::create(library, options);
  if (!context.is_ok()) return context.take_status();
  probe.resources = context.value()->resources();
  Unheard unheard;
  auto worker = UcxWorker::create(*context.value(), unheard);
  if (!worker.is_ok()) return worker.take_status();
  probe.address_bytes = worker.value()->address().size();
  probe.peer_bytes = UcxTransport::bytes_of_known_peer();
  probe.asking_bytes = UcxTransport::bytes_of_asking_peer();
  auto endpoint = worker.value()->connect(worker.value()->address());
  if (!endpoint.is_ok()) return endpoint.take_status();
  probe.messages = worker.value()->lane(endpoint.value());
  probe.piece_bytes = worker.value()->piece_bytes(endpoint.value());
  return {};
}

}  // namespace

NetworkProbe probe_network(const std::string& library, const std::string& transports, const std::string& devices) {
  NetworkProbe probe;
  auto loaded = UcxLibrary::load(library);
  if (!loaded.is_ok()) {
    probe.refusal = loaded.take_status().text();
    return probe;
  }
  probe.version = loaded.value()->version_text();
  probe.library = loaded.value()->file();
  probe.origin = describe(loaded.value()->origin());
  UcxOptions options;
  if (!transports.empty()) options.transports = transports;
  if (!devices.empty()) options.devices = devices;
  probe.refusal = look(*loaded.value(), options, probe).text();
  return probe;
}

}  // namespace farsum
