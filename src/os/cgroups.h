/* The control groups of this process and what processors they leave it. C11 and C++: what is preloaded before there is
 * a C++ runtime asks here, too. It reads; nothing is kept. */
#ifndef FARSUM_OS_CGROUPS_H
#define FARSUM_OS_CGROUPS_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A group's folder, which is in the hierarchy of version 2 or in that of one of version 1's controllers. */
typedef void farsum_cgroup_visitor(const char* folder, int is_version_2, void* user);

/* One text behind the other; "" where that is no path of a file any more. */
static inline void farsum_cgroup_join(char* path, const char* one, const char* other) {
  const size_t length = strlen(one);
  const size_t more = strlen(other);
  if (length + more >= PATH_MAX) {
    *path = '\0';
    return;
  }
  memmove(path, one, length);
  memcpy(path + length, other, more + 1);
}

static inline int farsum_cgroup_lists(const char* comma_separated, const char* item) {
  const size_t length = strlen(item);
  const char* at = comma_separated;
  while ((at = strstr(at, item)) != NULL) {
    const int begins = at == comma_separated || at[-1] == ',';
    if (begins && (at[length] == ',' || at[length] == ':' || at[length] == '\0')) return 1;
    at += length;
  }
  return 0;
}

/* The process's group for that controller; 0 where it has none. */
static inline int farsum_cgroup_own(const char* root, const char* controller, int is_version_2, char* group) {
  char path[PATH_MAX];
  char line[PATH_MAX];
  int found = 0;
  farsum_cgroup_join(path, root, "/proc/self/cgroup");
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  while (!found && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char* controllers = strchr(line, ':');
    char* name = controllers == NULL ? NULL : strchr(++controllers, ':');
    if (name == NULL) continue;
    *name++ = '\0';
    found = is_version_2 ? *controllers == '\0' : farsum_cgroup_lists(controllers, controller);
    if (found) farsum_cgroup_join(group, name, "");
  }
  fclose(file);
  return found;
}

/* Of a group the part below `top`; "" where the group cannot be looked at. */
static inline const char* farsum_cgroup_below(const char* group, const char* top) {
  const size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
  if (strncmp(group, top, length) != 0 || (group[length] != '/' && group[length] != '\0')) return "";
  const char* below = group + length;
  return strncmp(below, "/..", 3) == 0 ? "" : below;
}

/* What the mount shows as its root, and each group from there down to the process's own. */
static inline void farsum_cgroup_visit_mount(const char* mount, const char* below, int is_version_2,
                                             farsum_cgroup_visitor* visit, void* user) {
  char folder[PATH_MAX];
  farsum_cgroup_join(folder, mount, "");
  visit(folder, is_version_2, user);
  while (*(below += strspn(below, "/")) != '\0') {
    const size_t length = strcspn(below, "/");
    char part[NAME_MAX + 1];
    if (length > NAME_MAX) return;
    memcpy(part, below, length);
    part[length] = '\0';
    farsum_cgroup_join(folder, folder, "/");
    farsum_cgroup_join(folder, folder, part);
    visit(folder, is_version_2, user);
    below += length;
  }
}

/* Visits the process's group for `controller` and all above it that are mounted here, the topmost first. `root` is ""
 * but in tests, which put proc/ and sys/ below a folder of their own. */
static inline void farsum_cgroup_visit(const char* root, const char* controller, farsum_cgroup_visitor* visit,
                                       void* user) {
  char path[PATH_MAX];
  char line[2 * PATH_MAX];
  farsum_cgroup_join(path, root, "/proc/self/mountinfo");
  FILE* file = fopen(path, "re");
  if (file == NULL) return;
  /* "id parent major:minor ROOT POINT options ... - TYPE source SUPER_OPTIONS" */
  while (fgets(line, sizeof line, file) != NULL) {
    char top[PATH_MAX];
    char point[PATH_MAX];
    char type[16];
    char options[PATH_MAX];
    char group[PATH_MAX];
    const char* dash = strstr(line, " - ");
    if (dash == NULL || sscanf(dash, " - %15s %*s %4095s", type, options) != 2 ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) {
      continue;
    }
    const int is_version_2 = strcmp(type, "cgroup2") == 0;
    if (!is_version_2 && (strcmp(type, "cgroup") != 0 || !farsum_cgroup_lists(options, controller))) continue;
    if (!farsum_cgroup_own(root, controller, is_version_2, group)) continue;
    farsum_cgroup_join(path, root, point);
    farsum_cgroup_visit_mount(path, farsum_cgroup_below(group, top), is_version_2, visit, user);
  }
  fclose(file);
}

/* The first line of a group's file; 0 where it cannot be read. */
static inline int farsum_cgroup_line(const char* folder, const char* name, char* line, int bytes) {
  char path[PATH_MAX];
  farsum_cgroup_join(path, folder, "/");
  farsum_cgroup_join(path, path, name);
  FILE* file = fopen(path, "re");
  if (file == NULL) return 0;
  const int read = fgets(line, bytes, file) != NULL;
  fclose(file);
  return read;
}

/* The least of what some groups leave, and the folder of the group that it is; 0: none bounds it. */
struct farsum_cgroup_bound {
  unsigned processors;
  char folder[PATH_MAX];
};

static inline void farsum_cgroup_offer(struct farsum_cgroup_bound* bound, long long processors, const char* folder) {
  if (processors <= 0 || processors > INT_MAX) return;
  if (bound->processors != 0 && bound->processors <= processors) return;
  bound->processors = (unsigned)processors;
  farsum_cgroup_join(bound->folder, folder, "");
}

/* Time on processors in a period, in whole processors. Who has one and a half cannot run two at once. */
static inline void farsum_cgroup_offer_quota(const char* folder, int is_version_2, void* user) {
  char line[64];
  long long quota = 0;
  long long period = 0;
  if (is_version_2) {
    if (!farsum_cgroup_line(folder, "cpu.max", line, sizeof line) || sscanf(line, "%lld %lld", &quota, &period) != 2)
      return;
  } else {
    if (!farsum_cgroup_line(folder, "cpu.cfs_quota_us", line, sizeof line) || sscanf(line, "%lld", &quota) != 1) return;
    if (!farsum_cgroup_line(folder, "cpu.cfs_period_us", line, sizeof line) || sscanf(line, "%lld", &period) != 1)
      return;
  }
  if (quota <= 0 || period <= 0) return;
  farsum_cgroup_offer((struct farsum_cgroup_bound*)user, quota < period ? 1 : quota / period, folder);
}

/* How many numbers a list such as "0-3,8" has. */
static inline long long farsum_cgroup_list_size(const char* list) {
  long long size = 0;
  while (*list >= '0' && *list <= '9') {
    char* end = NULL;
    const long long first = strtoll(list, &end, 10);
    const long long last = *end == '-' ? strtoll(end + 1, &end, 10) : first;
    if (last >= first) size += last - first + 1;
    list = *end == ',' ? end + 1 : end;
  }
  return size;
}

static inline void farsum_cgroup_offer_set(const char* folder, int is_version_2, void* user) {
  char line[4096];
  const char* name = is_version_2 ? "cpuset.cpus.effective" : "cpuset.effective_cpus";
  if (!farsum_cgroup_line(folder, name, line, sizeof line) &&
      (is_version_2 || !farsum_cgroup_line(folder, "cpuset.cpus", line, sizeof line))) {
    return;
  }
  farsum_cgroup_offer((struct farsum_cgroup_bound*)user, farsum_cgroup_list_size(line), folder);
}

static inline void farsum_cgroup_read_quota(const char* root, struct farsum_cgroup_bound* bound) {
  bound->processors = 0;
  bound->folder[0] = '\0';
  farsum_cgroup_visit(root, "cpu", farsum_cgroup_offer_quota, bound);
}

static inline void farsum_cgroup_read_set(const char* root, struct farsum_cgroup_bound* bound) {
  bound->processors = 0;
  bound->folder[0] = '\0';
  farsum_cgroup_visit(root, "cpuset", farsum_cgroup_offer_set, bound);
}

#endif
