/* sha256.c - SHA-256 as the standard writes it, one block of 64 bytes at a time. Plain C: a download is slower than this on
 * any machine that could run its model. */
#include "base/sha256.h"

#include <string.h>

/* First 32 bits of the fractions of the cube roots of the first 64 primes. */
static const u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The same of the square roots of the first 8 primes. */
static const u32 START[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static inline u32 turn(u32 x, int n) { return x >> n | x << (32 - n); }

static inline u32 load(const u8 *p) { return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3]; }

/* One round; the caller renames the eight words instead of moving them. kw: this round's constant plus its word. */
static inline void stir(u32 a, u32 b, u32 c, u32 *d, u32 e, u32 f, u32 g, u32 *h, u32 kw)
{
    const u32 s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25), s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
    const u32 t = *h + s1 + (g ^ (e & (f ^ g))) + kw;
    *d += t;
    *h = t + s0 + ((a & b) | (c & (a | b)));
}

static void mix(u32 h[8], const u8 *block)
{
    u32 w[64];
    for (int i = 0; i < 16; i++) w[i] = load(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        const u32 s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        const u32 s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    u32 s = h[0], t = h[1], u = h[2], v = h[3], x = h[4], y = h[5], z = h[6], q = h[7];
    for (int i = 0; i < 64; i += 8) {
        stir(s, t, u, &v, x, y, z, &q, K[i] + w[i]);
        stir(q, s, t, &u, v, x, y, &z, K[i + 1] + w[i + 1]);
        stir(z, q, s, &t, u, v, x, &y, K[i + 2] + w[i + 2]);
        stir(y, z, q, &s, t, u, v, &x, K[i + 3] + w[i + 3]);
        stir(x, y, z, &q, s, t, u, &v, K[i + 4] + w[i + 4]);
        stir(v, x, y, &z, q, s, t, &u, K[i + 5] + w[i + 5]);
        stir(u, v, x, &y, z, q, s, &t, K[i + 6] + w[i + 6]);
        stir(t, u, v, &x, y, z, q, &s, K[i + 7] + w[i + 7]);
    }
    const u32 add[8] = { s, t, u, v, x, y, z, q };
    for (int i = 0; i < 8; i++) h[i] += add[i];
}

void qn_sha256_begin(qn_sha256 *s)
{
    memcpy(s->h, START, sizeof START);
    s->bytes = 0;
}

void qn_sha256_add(qn_sha256 *s, const void *p, size_t n)
{
    const u8 *at = p;
    const size_t held = (size_t)(s->bytes % 64);
    s->bytes += n;
    if (held) {
        const size_t take = qn_minz(64 - held, n);
        memcpy(s->block + held, at, take);
        at += take;
        n -= take;
        if (held + take < 64) return;
        mix(s->h, s->block);
    }
    for (; n >= 64; at += 64, n -= 64) mix(s->h, at);
    if (n) memcpy(s->block, at, n);
}

void qn_sha256_end(qn_sha256 *s, char hex[65])
{
    static const char digit[] = "0123456789abcdef";
    const u64 bits = s->bytes * 8;
    static const u8 pad[64] = { 0x80 };
    u8 tail[8];
    for (int i = 0; i < 8; i++) tail[i] = (u8)(bits >> (56 - 8 * i));
    qn_sha256_add(s, pad, 1 + (119 - (size_t)(s->bytes % 64)) % 64);
    qn_sha256_add(s, tail, sizeof tail);
    for (int i = 0; i < 64; i++) hex[i] = digit[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = '\0';
}

bool qn_is_sha256(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdefABCDEF") == 64;
}
