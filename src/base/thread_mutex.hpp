// A mutex among the threads of this process, and its guards, for clang to check: what is said to be guarded by one is
// refused where some way to it does not hold that (tools/lint). The standard library's carry no such words; these
// compile to them.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define FARSUM_THREADS_(x) __attribute__((x))
#else
#define FARSUM_THREADS_(x)
#endif
// The member is read and written with the mutex only.
#define FARSUM_GUARDED_BY(mutex) FARSUM_THREADS_(guarded_by(mutex))
// Who calls the function holds the mutex, or does not.
#define FARSUM_REQUIRES(...) FARSUM_THREADS_(requires_capability(__VA_ARGS__))
#define FARSUM_EXCLUDES(...) FARSUM_THREADS_(locks_excluded(__VA_ARGS__))
// The function returns a reference to the mutex.
#define FARSUM_RETURNS_MUTEX(mutex) FARSUM_THREADS_(lock_returned(mutex))
// The check cannot follow the function, whose comment says why it is right.
#define FARSUM_UNCHECKED_THREADS FARSUM_THREADS_(no_thread_safety_analysis)

namespace farsum {

class FARSUM_THREADS_(capability("mutex")) ThreadMutex {
 public:
  void lock() FARSUM_THREADS_(acquire_capability()) { mutex_.lock(); }
  void unlock() FARSUM_THREADS_(release_capability()) { mutex_.unlock(); }
  bool try_lock() FARSUM_THREADS_(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex as long as it lives.
class FARSUM_THREADS_(scoped_lockable) MutexGuard {
 public:
  explicit MutexGuard(ThreadMutex& mutex) FARSUM_THREADS_(acquire_capability(mutex)) : mutex_(mutex) { mutex.lock(); }
  // Of one that the caller has locked.
  MutexGuard(ThreadMutex& mutex, std::adopt_lock_t) FARSUM_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexGuard() FARSUM_THREADS_(release_capability()) { mutex_.unlock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  ThreadMutex& mutex_;
};

// The same, and can let it go meanwhile.
class FARSUM_THREADS_(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(ThreadMutex& mutex) FARSUM_THREADS_(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  ~MutexLock() FARSUM_THREADS_(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() FARSUM_THREADS_(acquire_capability()) { lock_.lock(); }
  void unlock() FARSUM_THREADS_(release_capability()) { lock_.unlock(); }
  // Holds it again when it returns. A condition is looked at by the caller, which clang knows to hold the mutex.
  void wait(std::condition_variable& changed) { changed.wait(lock_); }

 private:
  std::unique_lock<std::mutex> lock_;
};

// Lets a mutex go that its maker holds, and holds it again when it ends.
class FARSUM_THREADS_(scoped_lockable) MutexPause {
 public:
  explicit MutexPause(ThreadMutex& mutex) FARSUM_THREADS_(release_capability(mutex)) : mutex_(mutex) { mutex.unlock(); }
  ~MutexPause() FARSUM_THREADS_(release_capability()) { mutex_.lock(); }
  MutexPause(const MutexPause&) = delete;
  MutexPause& operator=(const MutexPause&) = delete;

 private:
  ThreadMutex& mutex_;
};

}  // namespace farsum
