// PMIx through its library, which is found at run time: the one that is in the process already, as beside an MPI
// library, else by name. Every conversation with the server runs in a thread of its own, which is left behind when the
// server does not answer: most of PMIx's calls know no time limit.
#include <dlfcn.h>
#include <pmix.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "runtime/pmix.hpp"

namespace farsum {
namespace {

constexpr const char* usual_name = "libpmix.so.2";

struct Library {
  decltype(&PMIx_Init) init = nullptr;
  decltype(&PMIx_Finalize) finalize = nullptr;
  decltype(&PMIx_Put) put = nullptr;
  decltype(&PMIx_Commit) commit = nullptr;
  decltype(&PMIx_Fence_nb) fence = nullptr;
  decltype(&PMIx_Get) get = nullptr;
  decltype(&PMIx_Error_string) error_string = nullptr;
  decltype(&PMIx_Get_version) version = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// It stays in the process: PMIx's own threads may still be in it.
Result<Library> load_library(const Settings& settings) {
  const char* name = settings.pmix_library.empty() ? usual_name : settings.pmix_library.c_str();
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Status(Code::unsupported, dlerror());
  Library library;
  const bool whole = find(handle, "PMIx_Init", library.init) && find(handle, "PMIx_Finalize", library.finalize) &&
                     find(handle, "PMIx_Put", library.put) && find(handle, "PMIx_Commit", library.commit) &&
                     find(handle, "PMIx_Fence_nb", library.fence) && find(handle, "PMIx_Get", library.get) &&
                     find(handle, "PMIx_Error_string", library.error_string) &&
                     find(handle, "PMIx_Get_version", library.version);
  if (!whole) return Status(Code::unsupported, fmt::format("{} lacks a function of PMIx: {}", name, dlerror()));
  return library;
}

// What `work` answers, or nothing when it has not by then. What it touches must outlive it.
template <class Answer>
std::optional<Answer> within(Pmix::Patience patience, std::function<Answer()> work) {
  auto task = std::make_shared<std::packaged_task<Answer()>>(std::move(work));
  std::future<Answer> answer = task->get_future();
  // Signals are blocked for the threads that PMIx starts, too: the program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread([task] { (*task)(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (answer.wait_for(patience) == std::future_status::ready) {
    thread.join();
    return answer.get();
  }
  thread.detach();
  return std::nullopt;
}

pmix_info_t yes(const char* key) {
  pmix_info_t info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = true;
  return info;
}

struct ValueDeleter {
  void operator()(pmix_value_t* value) const {
    if (value->type == PMIX_BYTE_OBJECT) std::free(value->data.bo.bytes);
    std::free(value);
  }
};
using Value = std::unique_ptr<pmix_value_t, ValueDeleter>;

// What is there already.
Value get_value(const Library& library, const pmix_proc_t& process, const char* key) {
  const pmix_info_t at_once = yes(PMIX_IMMEDIATE);
  pmix_value_t* value = nullptr;
  if (library.get(&process, key, &at_once, 1, &value) != PMIX_SUCCESS) return nullptr;
  return Value(value);
}

// Waits until it is published. A fence of Open MPI 5's server does not bring what ranks of other hosts have published,
// though it is asked to: the server fetches that when somebody waits for it.
Value await_value(const Library& library, const pmix_proc_t& process, const char* key) {
  if (Value value = get_value(library, process, key); value != nullptr) return value;
  pmix_value_t* value = nullptr;
  if (library.get(&process, key, nullptr, 0, &value) != PMIX_SUCCESS) return nullptr;
  return Value(value);
}

std::vector<std::byte> bytes_of(const Value& value) {
  if (value == nullptr || value->type != PMIX_BYTE_OBJECT) return {};
  const auto* bytes = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
  return {bytes, bytes + value->data.bo.size};
}

struct Greeting {
  pmix_status_t status = PMIX_SUCCESS;
  pmix_proc_t self{};
  std::uint32_t size = 0;
  std::uint32_t local_size = 0;
};

// 0 where the server does not say.
std::uint32_t get_count(const Library& library, const pmix_proc_t& process, const char* key) {
  const Value value = get_value(library, process, key);
  return value != nullptr && value->type == PMIX_UINT32 ? value->data.uint32 : 0;
}

Greeting greet(const Library& library) {
  Greeting greeting;
  greeting.status = library.init(&greeting.self, nullptr, 0);
  if (greeting.status != PMIX_SUCCESS) return greeting;
  pmix_proc_t job = greeting.self;
  job.rank = PMIX_RANK_WILDCARD;
  greeting.size = get_count(library, job, PMIX_JOB_SIZE);
  greeting.local_size = get_count(library, job, PMIX_LOCAL_SIZE);
  return greeting;
}

// Shared with a callback that may come when nobody waits any more.
struct Fence {
  std::promise<pmix_status_t> status;
};

class PmixClient : public Pmix {
 public:
  PmixClient(const Library& library, const Greeting& greeting, Patience patience)
      : library_(library), self_(greeting.self), size_(greeting.size), patience_(patience) {
    if (greeting.local_size != size_ || size_ > most_fenced_by_name) return;
    members_.assign(size_, self_);
    for (std::uint32_t rank = 0; rank < size_; ++rank) members_[rank].rank = rank;
  }

  ~PmixClient() override {
    within<pmix_status_t>(patience_, [library = library_] { return library.finalize(nullptr, 0); });
  }

  std::uint32_t rank() const override { return self_.rank; }
  std::uint32_t size() const override { return size_; }

  Status publish(const std::string& key, const void* data, std::size_t bytes) override {
    // Both copy, and neither waits for the server.
    std::vector<char> copy(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
    pmix_value_t value{};
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo = {copy.data(), bytes};
    pmix_status_t status = library_.put(PMIX_GLOBAL, key.c_str(), &value);
    if (status == PMIX_SUCCESS) status = library_.commit();
    return status == PMIX_SUCCESS ? Status() : failure("PMIx_Put", status);
  }

  Status fence(Patience patience) override {
    const pmix_info_t collect = yes(PMIX_COLLECT_DATA);
    auto* fence = new std::shared_ptr<Fence>(std::make_shared<Fence>());
    std::future<pmix_status_t> came = (*fence)->status.get_future();
    const auto arrived = [](pmix_status_t status, void* data) {
      const std::unique_ptr<std::shared_ptr<Fence>> owned(static_cast<std::shared_ptr<Fence>*>(data));
      (*owned)->status.set_value(status);
    };
    const pmix_status_t started =
        library_.fence(members_.empty() ? nullptr : members_.data(), members_.size(), &collect, 1, arrived, fence);
    if (started != PMIX_SUCCESS) {
      delete fence;
      return failure("PMIx_Fence", started);
    }
    if (came.wait_for(patience) != std::future_status::ready) return {Code::pending, "the ranks have not all come"};
    const pmix_status_t status = came.get();
    return status == PMIX_SUCCESS ? Status() : failure("PMIx_Fence", status);
  }

  std::vector<std::byte> look_up(std::uint32_t rank, const std::string& key, Patience patience) override {
    pmix_proc_t process = self_;
    process.rank = rank;
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + patience;
    const auto asks_until = std::min(end, Clock::now() + longest_asked) - between_asking;
    for (;;) {
      const auto found = within<std::vector<std::byte>>(
          std::chrono::ceil<Patience>(end - Clock::now()),
          [library = library_, process, key] { return bytes_of(await_value(library, process, key.c_str())); });
      if (!found || !found->empty() || Clock::now() >= asks_until) return found.value_or(std::vector<std::byte>());
      std::this_thread::sleep_for(between_asking);
    }
  }

 private:
  Status failure(const char* call, pmix_status_t status) const {
    return {Code::system,
            fmt::format("farsum_init: {} failed ({}): the PMIx server of the job's launcher is gone, or a rank ended "
                        "before it came to farsum_init",
                        call, library_.error_string(status))};
  }

  // Ranks: their names travel with each fence.
  static constexpr std::uint32_t most_fenced_by_name = 1024;
  // Open MPI 4.1's server on a busy machine has told one of two ranks, right behind their fence, that the other had
  // published nothing, where a program had published under the same key before: what is not there is asked for again.
  static constexpr Patience longest_asked{2000}, between_asking{20};

  Library library_;
  pmix_proc_t self_;
  std::uint32_t size_;
  Patience patience_;
  // All, where one server has them all: that of Open MPI 5 miscounts those that it is to wait for where it counts all
  // of a job, when others were connected in their places before.
  std::vector<pmix_proc_t> members_;
};

}  // namespace

std::string describe_pmix(const Settings& settings) {
  const Result<Library> library = load_library(settings);
  if (library.is_ok()) return library.value().version();
  Result<Library> failed = load_library(settings);
  return failed.take_status().text();
}

Result<std::unique_ptr<Pmix>> open_pmix(const Settings& settings) {
  constexpr const char* way_out =
      "; without PMIx, start the program with farsum run, or set FARSUM_PMIX=refuse for a rank alone";
  Result<Library> library = load_library(settings);
  if (!library.is_ok()) {
    return Status(Code::unsupported,
                  fmt::format("farsum_init: a PMIx launcher started this rank, but there is no PMIx library (install "
                              "libpmix2, or name one in FARSUM_PMIX_LIBRARY): {}{}",
                              library.take_status().text(), way_out));
  }
  const Pmix::Patience patience(std::chrono::seconds(settings.wireup_timeout_s));
  const auto greeting = within<Greeting>(patience, [copy = library.value()] { return greet(copy); });
  if (!greeting.has_value()) {
    return Status(Code::system,
                  fmt::format("farsum_init: the PMIx server of the job's launcher did not answer within {} s "
                              "(FARSUM_WIREUP_TIMEOUT)",
                              settings.wireup_timeout_s));
  }
  if (greeting->status != PMIX_SUCCESS) {
    return Status(Code::system,
                  fmt::format("farsum_init: the PMIx server of the job's launcher cannot be reached ({}){}",
                              library.value().error_string(greeting->status), way_out));
  }
  auto pmix = std::make_unique<PmixClient>(library.value(), *greeting, patience);
  if (greeting->size == 0 || greeting->self.rank >= greeting->size) {
    return Status(Code::system,
                  fmt::format("farsum_init: the PMIx server says rank {} of {}", greeting->self.rank, greeting->size));
  }
  return std::unique_ptr<Pmix>(std::move(pmix));
}

}  // namespace farsum
