#include "requests.hpp"

#include "errors.hpp"
#include "front.hpp"
#include "quick_table.hpp"

namespace farsum::mpi {

// ---- what the library calls for a generalised request ----

// Always a success here: libraries differ in what they do with a request whose query fails. The wait calls add the
// error.
int Requests::query(void*, MPI_Status* status) {
  library().Status_set_elements(status, MPI_BYTE, 0);
  library().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  status->MPI_ERROR = MPI_SUCCESS;
  return MPI_SUCCESS;
}

// The last moment at which the handle is this request's: the library gives it to another next.
int Requests::freed(void* request) {
  Requests& all = Front::get().requests;
  const std::lock_guard lock(all.mutex_);
  if (all.by_handle_.erase(handle_key(static_cast<OpenRequest*>(request)->handle)) != 0) {
    all.open_.fetch_sub(1, std::memory_order_relaxed);  // see any_open
  }
  return MPI_SUCCESS;
}

// MPI allows no cancelling of one-sided operations.
int Requests::cancelled(void*, int) { return MPI_SUCCESS; }

// ---- giving ----

int Requests::give_complete(MPI_Request* request) {
  // A send to nobody is complete when it is made; libraries keep one such request for all.
  return library().Isend(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, Front::get().self(), request);
}

int Requests::give(const Window& window, const char* call, farsum_request operation, MPI_Request* request) {
  int done = 0;
  const farsum_status status = farsum_test(&operation, &done);
  if (status != FARSUM_OK) return raise(window, call, status);
  if (done != 0) return give_complete(request);
  if (any_open()) drop_finished();
  auto open = std::make_shared<OpenRequest>();
  open->operation = operation;
  open->call = call;
  open->window = window.handle;
  open->engine_window = window.engine.bits;
  const int result = library().Grequest_start(query, freed, cancelled, open.get(), &open->handle);
  if (result != MPI_SUCCESS) return farsum_wait(&operation) == FARSUM_OK ? give_complete(request) : result;
  *request = open->handle;
  const std::lock_guard lock(mutex_);
  by_handle_[handle_key(open->handle)] = std::move(open);
  open_.fetch_add(1, std::memory_order_relaxed);  // see any_open
  return MPI_SUCCESS;
}

// ---- finding ----

std::shared_ptr<OpenRequest> Requests::find(MPI_Request handle) {
  const std::lock_guard lock(mutex_);
  const auto found = by_handle_.find(handle_key(handle));
  return found == by_handle_.end() ? nullptr : found->second;
}

std::vector<Requests::Position> Requests::find_all(int count, const MPI_Request* handles) {
  std::vector<Position> positions;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < count && !by_handle_.empty(); ++i) {
    if (handles[i] == MPI_REQUEST_NULL) continue;
    const auto found = by_handle_.find(handle_key(handles[i]));
    if (found != by_handle_.end()) positions.push_back({i, found->second});
  }
  return positions;
}

// ---- completing ----

bool Requests::advance(OpenRequest& request, bool blocking) {
  // Acquire pairs with the release below: the operation's results and status are there.
  if (request.complete.load(std::memory_order_acquire)) return true;
  // Threads may look at one request at once.
  std::unique_lock asking(request.asking, std::defer_lock);
  if (blocking)
    asking.lock();
  else if (!asking.try_lock())
    return false;
  // Relaxed: the lock orders it.
  if (request.complete.load(std::memory_order_relaxed)) return true;
  int done = blocking ? 1 : 0;
  request.status = blocking ? farsum_wait(&request.operation) : farsum_test(&request.operation, &done);
  if (request.status != FARSUM_OK) {
    request.sentence = farsum_last_error();
    done = 1;
  }
  if (done == 0) return false;
  library().Grequest_complete(request.handle);
  request.complete.store(true, std::memory_order_release);
  return true;
}

void Requests::abandon(OpenRequest& request) {
  if (test(request)) return;
  {
    const std::lock_guard lock(mutex_);
    abandoned_.push_back(request.operation);
    open_.fetch_add(1, std::memory_order_relaxed);  // see any_open
  }
  library().Grequest_complete(request.handle);
  request.complete.store(true, std::memory_order_release);
}

void Requests::drop_finished() {
  std::vector<farsum_request> candidates;
  {
    const std::lock_guard lock(mutex_);
    candidates.swap(abandoned_);
  }
  if (candidates.empty()) return;
  const std::size_t before = candidates.size();
  std::erase_if(candidates, [](farsum_request& operation) {
    int done = 0;
    return farsum_test(&operation, &done) != FARSUM_OK || done != 0;
  });
  const std::lock_guard lock(mutex_);
  abandoned_.insert(abandoned_.end(), candidates.begin(), candidates.end());
  open_.fetch_sub(before - candidates.size(), std::memory_order_relaxed);  // see any_open
}

Raised Requests::error_of(const OpenRequest& request) {
  if (request.status == FARSUM_OK) return {MPI_SUCCESS, MPI_SUCCESS};
  const Front& front = Front::get();
  const int error_class = error_class_of(request.status);
  const Window* window = front.windows.find(request.window);
  if (window != nullptr && window->engine.bits == request.engine_window) {
    return tell(*window, request.call, error_class, request.sentence);
  }
  return tell(MPI_COMM_SELF, request.call, error_class, request.sentence);
}

void Requests::close() {
  std::vector<std::shared_ptr<OpenRequest>> left;
  std::vector<farsum_request> abandoned;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, request] : by_handle_) left.push_back(request);
    abandoned.swap(abandoned_);
    open_.fetch_sub(abandoned.size(), std::memory_order_relaxed);  // see any_open
  }
  for (const auto& request : left) wait(*request);
  for (farsum_request& operation : abandoned) static_cast<void>(farsum_wait(&operation));
}

}  // namespace farsum::mpi
