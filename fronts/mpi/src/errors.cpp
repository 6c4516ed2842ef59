#include "errors.hpp"

#include <cstdio>
#include <map>
#include <mutex>

#include "calls.hpp"
#include "guard.hpp"
#include "handlers.hpp"
#include "window.hpp"
#include "witness.hpp"

namespace farsum::mpi {
namespace {

// One code for each class, made when first needed; its string is that of the latest error. Codes cannot be given back
// to MPI, so one for each error would grow without bound.
class Codes {
 public:
  int give(int error_class, const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    auto [entry, is_new] = of_classes_.try_emplace(error_class, error_class);
    if (is_new && library().Add_error_code(error_class, &entry->second) != MPI_SUCCESS) entry->second = error_class;
    if (entry->second == error_class) {
      std::fprintf(stderr, "farsum: %s\n", sentence.c_str());
      return error_class;
    }
    std::string& kept = sentences_[entry->second] = sentence.substr(0, MPI_MAX_ERROR_STRING - 1);
    library().Add_error_string(entry->second, kept.c_str());
    return entry->second;
  }
  // False for a code that was not made here.
  bool tell(int code, char* text, int* length) {
    const std::lock_guard lock(mutex_);
    const auto found = sentences_.find(code);
    if (found == sentences_.end()) return false;
    *length = static_cast<int>(found->second.copy(text, MPI_MAX_ERROR_STRING - 1));
    text[*length] = '\0';
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<int, int> of_classes_;
  std::map<int, std::string> sentences_;
};

Codes& codes() {
  // Never destroyed: exit handlers of the program may still call MPI.
  static auto* const all = new Codes;
  return *all;
}

// MPICH has other words for a code of a class that it did not make itself: it takes it for one of its own.
int error_string(int code, char* text, int* length) {
  return codes().tell(code, text, length) ? MPI_SUCCESS : library().Error_string(code, text, length);
}

// A handler that ends the job may print the library's words for the code only: the sentence comes first. The code by
// which the library itself finds the sentence: MPICH 4.0 sets a bit in codes of classes that were made, and only then
// looks for the words that came with the code; later it sets it in all.
int say_before_end(int code, const std::string& sentence) {
  std::fprintf(stderr, "farsum: %s\n", sentence.c_str());
  tell_witness_of_abort();
  constexpr int made_bit = 1 << 30;
  for (const int told : {code, code | made_bit}) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    const bool is_code = library().Error_string(told, text, &length) == MPI_SUCCESS;
    if (is_code && sentence.starts_with(text) && length != 0) return told;
  }
  return code;
}

template <class Call>
Raised tell(MPI_Errhandler handler, int error_class, const std::string& sentence, Call call) {
  Raised raised{codes().give(error_class, sentence), MPI_SUCCESS};
  raised.result = call(ends_the_job(handler) ? say_before_end(raised.code, sentence) : raised.code);
  return raised;
}

std::string name_of(const Window& window) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  if (library().Win_get_name(window.handle, name, &length) != MPI_SUCCESS || length == 0)
    return "a window without a name";
  return std::string("window '") + name + "'";
}

}  // namespace

int error_class_of(farsum_status status) {
  switch (status) {
    case FARSUM_OK:
      return MPI_SUCCESS;
    case FARSUM_ERR_NOT_INITIALIZED:
    case FARSUM_ERR_SYSTEM:
    case FARSUM_ERR_PEER_FAILED:
    case FARSUM_ERR_UNSUPPORTED:
      return MPI_ERR_OTHER;
    case FARSUM_ERR_ARGUMENT:
      return MPI_ERR_ARG;
    case FARSUM_ERR_HANDLE:
      return MPI_ERR_WIN;
    case FARSUM_ERR_RANK:
      return MPI_ERR_RANK;
    case FARSUM_ERR_RANGE:
    case FARSUM_ERR_UNREACHABLE:
      return MPI_ERR_RMA_RANGE;
    case FARSUM_ERR_ALIGNMENT:
      return MPI_ERR_DISP;
    case FARSUM_ERR_TYPE:
    case FARSUM_ERR_LAYOUT:
      return MPI_ERR_TYPE;
    case FARSUM_ERR_SYNC:
    case FARSUM_ERR_PENDING:
      return MPI_ERR_RMA_SYNC;
    case FARSUM_ERR_NO_MEMORY:
      return MPI_ERR_NO_MEM;
  }
  return MPI_ERR_OTHER;
}

Raised tell(const Window& window, const char* call, int error_class, const std::string& sentence) {
  const std::string whole = std::string(call) + " on " + name_of(window) + ": " + sentence;
  const MPI_Errhandler handler = window_handler(window.handle);
  return tell(handler, error_class, whole, [&](int code) { return call_window_handler(window.handle, handler, code); });
}

Raised tell(MPI_Comm comm, const char* call, int error_class, const std::string& sentence) {
  const std::string whole = std::string(call) + ": " + sentence;
  const MPI_Errhandler handler = communicator_handler(comm);
  return tell(handler, error_class, whole, [&](int code) { return call_communicator_handler(comm, handler, code); });
}

int raise(const Window& window, const char* call, int error_class, const std::string& sentence) {
  return tell(window, call, error_class, sentence).result;
}

int raise(const Window& window, const char* call, farsum_status status) {
  return raise(window, call, error_class_of(status), farsum_last_error());
}

int raise(MPI_Comm comm, const char* call, int error_class, const std::string& sentence) {
  return tell(comm, call, error_class, sentence).result;
}

void put_error_calls(farsum_mpi_calls& active) { active.Error_string = guard::Error_string<error_string>::call; }

}  // namespace farsum::mpi
