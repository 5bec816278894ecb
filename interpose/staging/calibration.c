/* calibration.c: see calibration.h. A file is replaced as a whole, by renaming: programs that
 * measure at once do not spoil it. Lack of a place for it only means that the next program
 * measures again. */
#include "interpose/staging/calibration.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "interpose/record/context.h"

/* What a file's name may not hold, or should not. */
static void sanitize_name(char *text)
{
  for (char *p = text; *p; p++)
    if (*p == '/' || *p == ' ' || *p == '.') *p = '-';
}

static bool name_of_measure(char name[128], unsigned device)
{
  PFN_cuDeviceGetName_v2000 ask = WEIR_HELPER(cuDeviceGetName);
  name[127] = 0;
  return ask && ask(name, 127, (CUdevice)device) == CUDA_SUCCESS;
}

bool calibration_key(char key[CALIBRATION_KEY_ROOM], unsigned device, unsigned threads)
{
  char name[128] = "";
  if (!name_of_measure(name, device)) return false;
  (void)snprintf(key, CALIBRATION_KEY_ROOM, "staging-%s-%u", name, threads);
  sanitize_name(key);
  return true;
}

bool calibration_key_peers(char key[CALIBRATION_KEY_ROOM], unsigned from, unsigned to)
{
  PFN_cuDeviceGetPCIBusId_v4010 ask = WEIR_HELPER(cuDeviceGetPCIBusId);
  char name[2][128] = {"", ""}, bus[2][32] = {"", ""};
  const unsigned device[2] = {from, to};
  for (int i = 0; i < 2; i++)
    if (!ask || !name_of_measure(name[i], device[i]) ||
        ask(bus[i], sizeof bus[i], (CUdevice)device[i]) != CUDA_SUCCESS)
      return false;
  (void)snprintf(key, CALIBRATION_KEY_ROOM, "staging-%s-%s-to-%s-%s", name[0], bus[0], name[1],
                 bus[1]);
  sanitize_name(key);
  return true;
}

/* False: there is no place for it. */
static bool path_of_measure(char path[PATH_MAX], const char *key, bool make)
{
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char folder[PATH_MAX];
  int n = cache && *cache == '/' ? snprintf(folder, sizeof folder, "%s", cache)
          : home && *home == '/' ? snprintf(folder, sizeof folder, "%s/.cache", home)
                                 : -1;
  if (n < 0 || n > PATH_MAX - 2 * CALIBRATION_KEY_ROOM) return false;
  if (make) (void)mkdir(folder, 0700);
  n = snprintf(path, PATH_MAX, "%s/weir", folder);
  if (make) (void)mkdir(path, 0700);
  return snprintf(path + n, PATH_MAX - (size_t)n, "/%s", key) > 0;
}

/* "ONE OTHER\n" */
static void read_both(const char *key, unsigned percent[2])
{
  char path[PATH_MAX], text[64];
  percent[0] = percent[1] = 0;
  if (!path_of_measure(path, key, false)) return;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t n = read(fd, text, sizeof text - 1);
  (void)close(fd);
  text[n > 0 ? n : 0] = 0;
  if (sscanf(text, "%u %u", &percent[0], &percent[1]) != 2) percent[0] = percent[1] = 0;
}

unsigned calibration_read(const char *key, int which)
{
  unsigned percent[2];
  read_both(key, percent);
  return percent[which];
}

void calibration_write(const char *key, int which, unsigned value)
{
  char path[PATH_MAX], fresh[PATH_MAX + 16], text[64];
  unsigned percent[2];
  read_both(key, percent);
  percent[which] = value;
  if (!path_of_measure(path, key, true)) return;
  (void)snprintf(fresh, sizeof fresh, "%s.%d", path, (int)getpid());
  int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  int n = snprintf(text, sizeof text, "%u %u\n", percent[0], percent[1]);
  bool good = write(fd, text, (size_t)n) == n;
  if (close(fd) || !good || rename(fresh, path)) (void)unlink(fresh);
}
