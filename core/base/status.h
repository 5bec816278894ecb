/* status.h: how a function of Weir states that it failed.
 *
 * A fallible function returns a weir_status; 0 is success. Who detects a failure first words it
 * with weir_fail(): one sentence with the cause and the numbers, kept per thread. Everyone above
 * passes the status on and leaves the sentence alone. Nothing here prints, aborts or allocates. */
#ifndef WEIR_BASE_STATUS_H
#define WEIR_BASE_STATUS_H

/* What libweir.so exports; everything else of Weir is built hidden. */
#define WEIR_PUBLIC __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* One row a status: identifier suffix, value, sentence used when nobody worded a better one. Values
 * are part of the ABI: never renumber, only append. */
#define WEIR_STATUS_MAP(X)                                                                         \
  X(OK, 0, "success")                                                                              \
  X(EINVAL, 1, "invalid argument")                                                                 \
  X(ENOMEM, 2, "out of host memory")                                                               \
  X(EIO, 3, "input or output failed")                                                              \
  X(ENOSPC, 4, "no space left on device")                                                          \
  X(ENOENT, 5, "no such file or directory")                                                        \
  X(ECORRUPT, 6, "the file is damaged")                                                            \
  X(EVERSION, 7, "the file was written by an incompatible version")                                \
  X(ENOTSUP, 8, "not supported")                                                                   \
  X(ECUDA, 9, "the CUDA driver reported an error")                                                 \
  X(EOOM, 10, "CUDA out of memory")                                                                \
  X(ELIMIT, 11, "a configured limit was reached")                                                  \
  X(EINTERNAL, 12, "internal error")

typedef enum weir_status {
#define WEIR_STATUS_ENUM(name, value, text) WEIR_##name = value,
  WEIR_STATUS_MAP(WEIR_STATUS_ENUM)
#undef WEIR_STATUS_ENUM
} weir_status;

/* The fixed sentence of a status (borrowed, static); unknown values get "unknown status". */
WEIR_PUBLIC const char *weir_status_string(weir_status status);

/* The sentence the last failing call of this thread left (borrowed, valid until its next failure);
 * "" when none has failed. */
WEIR_PUBLIC const char *weir_error_message(void);

/* Words a failure and returns `status`, so that a caller can `return weir_fail(...)`. The message
 * is cut at 511 bytes. Not for hot paths (formats). */
WEIR_PUBLIC weir_status weir_fail(weir_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* weir_fail() with ": " and strerror(errno_value) at the end. */
WEIR_PUBLIC weir_status weir_fail_errno(weir_status status, int errno_value, const char *format,
                                        ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
