/* types.h - the short names of sizes, and the few macros that every layer uses. */
#ifndef QN_TYPES_H
#define QN_TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;

#define QN_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define QN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

static inline int qn_mini(int a, int b) { return a < b ? a : b; }
static inline int qn_maxi(int a, int b) { return a > b ? a : b; }
static inline size_t qn_minz(size_t a, size_t b) { return a < b ? a : b; }

/* Checked arithmetic for numbers that come from outside: false means it did not fit. */
static inline bool qn_mul(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool qn_add(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

#endif
