/* Preloaded into every process of a stack: sets its wall clock, and records which bytes were synced.
 *
 * CHAOS_CLOCK is a file of 8 bytes, the nanoseconds (int64) that are added to the wall clock.
 * CHAOS_SYNCED is a file that gets a record of 24 bytes (device, inode, size; uint64 each) after
 * each fsync and fdatasync of a regular file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) offset = mapped;
}

static int (*real_clock_gettime)(clockid_t, struct timespec *);

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_clock_gettime) real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(clock, now);
    if (result == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t total = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *offset;
        now->tv_sec = total / 1000000000;
        now->tv_nsec = total % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *seconds) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}

static void record(int fd) {
    const char *path = getenv("CHAOS_SYNCED");
    struct stat status;
    if (!path || fstat(fd, &status) || !S_ISREG(status.st_mode)) return;
    int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (log < 0) return;
    uint64_t line[3] = {status.st_dev, status.st_ino, (uint64_t)status.st_size};
    if (write(log, line, sizeof line) < 0) { /* the disk is full: this sync is not recorded */ }
    close(log);
}

int fsync(int fd) {
    int result = syscall(SYS_fsync, fd);
    if (result == 0) record(fd);
    return result;
}

int fdatasync(int fd) {
    int result = syscall(SYS_fdatasync, fd);
    if (result == 0) record(fd);
    return result;
}
