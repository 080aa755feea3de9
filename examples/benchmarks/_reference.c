/* The yardstick of the benchmarks: the state update of an echo state network, in C.
 *
 *     x[t] = (1 - a) x[t-1] + a tanh(W x[t-1] + W_in u[t] + b)
 *
 * Built by _reference.py with -O3 -march=native, once with REAL double and once with REAL float.
 * A sparse W is stored in slices of LANES rows, padded to the longest row of the slice; inside a
 * slice entry k of all rows lies side by side (SELL), so that LANES sums grow in one register.
 * W_in (n_inputs rows) and b are padded with zeros to `padded` units, a multiple of LANES.
 * A W whose entries lie on few diagonals is stored by diagonal: no indices, contiguous loads.
 * Vectors are those of GCC and clang, for any machine; with -DGATHER, which needs AVX-512, entries
 * of the state are fetched by the gather instruction, which is faster on some processors only.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef GATHER
#ifndef __AVX512F__
#error "GATHER needs AVX-512"
#endif
#include <immintrin.h>
#endif

#define LANES ((long)(64 / sizeof(REAL)))
#define BATCH (4 * LANES) /* sequences side by side in batch_run */
#define VECTORS (BATCH / LANES)

typedef REAL vec __attribute__((vector_size(64)));

#ifdef SINGLE
typedef int32_t word;
typedef uint32_t bits __attribute__((vector_size(64)));
#define SIGN UINT32_C(0x80000000)
#define LIMIT 10.0f /* tanh is 1 to the last bit from here on */
#define ROUND 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
#define LN2_HIGH 0.693145752f
#define LN2_LOW 1.42860677e-6f
#define MANTISSA 23
#define ONE_EXPONENT 127
static const REAL EXPM1[] = {1.9890990e-4f, 1.3933650e-3f, 8.3333110e-3f,
                             4.1666465e-2f, 1.6666667e-1f, 5.0e-1f};
#else
typedef int64_t word;
typedef uint64_t bits __attribute__((vector_size(64)));
#define SIGN UINT64_C(0x8000000000000000)
#define LIMIT 20.0
#define ROUND 6755399441055744.0 /* 1.5 * 2^52 */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define MANTISSA 52
#define ONE_EXPONENT 1023
/* (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2, Chebyshev, error 1.1e-16; highest power first */
static const REAL EXPM1[] = {
    2.510038549551032e-08, 2.7620088445409746e-07, 2.7557268459997064e-06,
    2.4801521295954376e-05, 0.00019841269863053618, 0.0013888888917213717,
    0.008333333333330062, 0.04166666666662413, 0.16666666666666669, 0.5};
#endif
#define TERMS ((int)(sizeof(EXPM1) / sizeof(EXPM1[0])))

static inline vec load(const REAL *from) {
  vec v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline void store(REAL *to, vec v) { memcpy(to, &v, sizeof v); }

static inline vec spread(REAL value) { return value - (vec){0}; }

/* tanh |x| = e / (e + 2) with e = exp(2 |x|) - 1 = 2^k (exp(r) - 1) + 2^k - 1; no branches */
static inline vec vtanh(vec x) {
  const bits sign = (bits)x & SIGN;
  const vec size = (vec)((bits)x ^ sign);
  const bits large = (bits)(size > spread(LIMIT));
  const vec y = 2 * (vec)(((bits)size & ~large) | ((bits)spread(LIMIT) & large));
  const vec shifted = y * (REAL)1.4426950408889634 + (REAL)ROUND;
  const vec k = shifted - (REAL)ROUND;
  const vec r = (y - k * (REAL)LN2_HIGH) - k * (REAL)LN2_LOW;
  vec q = spread(EXPM1[0]);
  for (int i = 1; i < TERMS; i++) q = q * r + EXPM1[i];
  const vec p = (q * r) * r + r;
  const vec power = (vec)(((bits)shifted + ONE_EXPONENT) << MANTISSA);
  const vec e = power * p + (power - 1);
  return (vec)((bits)(e / (e + 2)) | sign);
}

/* (1 - a) before + a tanh(z) for up to LANES units */
static inline void finish(vec z, const REAL *before, REAL *after, long count, REAL leak) {
  if (count >= LANES) {
    store(after, leak * vtanh(z) + (1 - leak) * load(before));
    return;
  }
  vec rest = {0};
  memcpy(&rest, before, count * sizeof(REAL));
  rest = leak * vtanh(z) + (1 - leak) * rest;
  memcpy(after, &rest, count * sizeof(REAL));
}

static inline vec drive(long i, long padded, long n_inputs, const REAL *W_in, const REAL *bias,
                        const REAL *u) {
  vec z = load(bias + i);
  for (long k = 0; k < n_inputs; k++) z += u[k] * load(W_in + k * padded + i);
  return z;
}

static inline vec gather(const REAL *x, const uint32_t *index) {
#if defined(GATHER) && defined(SINGLE)
  return (vec)_mm512_i32gather_ps(_mm512_loadu_si512(index), x, 4);
#elif defined(GATHER)
  return (vec)_mm512_i32gather_pd(_mm256_loadu_si256((const void *)index), x, 8);
#elif defined(SINGLE)
  return (vec){x[index[0]],  x[index[1]],  x[index[2]],  x[index[3]],
               x[index[4]],  x[index[5]],  x[index[6]],  x[index[7]],
               x[index[8]],  x[index[9]],  x[index[10]], x[index[11]],
               x[index[12]], x[index[13]], x[index[14]], x[index[15]]};
#else
  return (vec){x[index[0]], x[index[1]], x[index[2]], x[index[3]],
               x[index[4]], x[index[5]], x[index[6]], x[index[7]]};
#endif
}

/* z: room for the padded units; tanh in a pass of its own lets the loads run ahead */
static inline void sparse_step(long n_units, long n_inputs, const int64_t *slice,
                               const uint32_t *index, const REAL *weight, const REAL *W_in,
                               const REAL *bias, REAL leak, const REAL *u, const REAL *before,
                               REAL *after, REAL *z) {
  const long padded = (n_units + LANES - 1) / LANES * LANES;
  for (long s = 0, i = 0; i < n_units; s++, i += LANES) {
    vec even = drive(i, padded, n_inputs, W_in, bias, u), odd = {0};
    long j = slice[s];
    const long end = slice[s + 1];
    for (; j + 2 * LANES <= end; j += 2 * LANES) {
      even += load(weight + j) * gather(before, index + j);
      odd += load(weight + j + LANES) * gather(before, index + j + LANES);
    }
    if (j < end) even += load(weight + j) * gather(before, index + j);
    store(z + i, even + odd);
  }
  for (long i = 0; i < n_units; i += LANES)
    finish(load(z + i), before + i, after + i, n_units - i, leak);
}

/* states: (n_steps, n_units); inputs: (n_steps, n_inputs); start: (n_units,) */
void sparse_run(long n_steps, long n_units, long n_inputs, const int64_t *slice,
                const uint32_t *index, const REAL *weight, const REAL *W_in, const REAL *bias,
                REAL leak, const REAL *start, const REAL *inputs, REAL *states) {
  REAL *z = aligned_alloc(64, (n_units + LANES) / LANES * 64);
  const REAL *before = start;
  for (long t = 0; t < n_steps; t++, before = states, states += n_units)
    sparse_step(n_units, n_inputs, slice, index, weight, W_in, bias, leak, inputs + t * n_inputs,
                before, states, z);
  free(z);
}

/* W on diagonals: row i of `weight` (n_diagonals, padded) k multiplies x[(i + offset[k]) mod n].
 * Each of the two states has a second copy of itself behind it, so that no load wraps around.
 */
void diagonals_run(long n_steps, long n_units, long n_inputs, long n_diagonals,
                   const int64_t *offset, const REAL *weight, const REAL *W_in, const REAL *bias,
                   REAL leak, const REAL *start, const REAL *inputs, REAL *states) {
  const long padded = (n_units + LANES - 1) / LANES * LANES, room = 2 * padded + LANES;
  REAL *x = aligned_alloc(64, 2 * room * sizeof(REAL));
  memset(x, 0, 2 * room * sizeof(REAL));
  memcpy(x, start, n_units * sizeof(REAL));
  memcpy(x + n_units, start, n_units * sizeof(REAL));
  for (long t = 0; t < n_steps; t++, states += n_units) {
    const REAL *before = x + (t % 2) * room;
    REAL *after = x + ((t + 1) % 2) * room;
    for (long i = 0; i < n_units; i += LANES) {
      vec even = drive(i, padded, n_inputs, W_in, bias, inputs + t * n_inputs), odd = {0};
      long k = 0;
      for (; k + 2 <= n_diagonals; k += 2) {
        even += load(weight + k * padded + i) * load(before + i + offset[k]);
        odd += load(weight + (k + 1) * padded + i) * load(before + i + offset[k + 1]);
      }
      if (k < n_diagonals) even += load(weight + k * padded + i) * load(before + i + offset[k]);
      store(after + i, leak * vtanh(even + odd) + (1 - leak) * load(before + i));
    }
    memcpy(after + n_units, after, n_units * sizeof(REAL));
    memcpy(states, after, n_units * sizeof(REAL));
  }
  free(x);
}

/* closed loop: outputs (n_steps, n_inputs), row t enters as the input of step t + 1 */
void sparse_loop(long n_steps, long n_units, long n_inputs, const int64_t *slice,
                 const uint32_t *index, const REAL *weight, const REAL *W_in, const REAL *bias,
                 REAL leak, const REAL *start, const REAL *first, const REAL *coef,
                 const REAL *intercept, REAL *outputs) {
  REAL *state = malloc(2 * n_units * sizeof(REAL));
  REAL *z = aligned_alloc(64, (n_units + LANES) / LANES * 64);
  memcpy(state, start, n_units * sizeof(REAL));
  const REAL *u = first;
  for (long t = 0; t < n_steps; t++, u = outputs, outputs += n_inputs) {
    const REAL *before = state + (t % 2) * n_units;
    REAL *after = state + ((t + 1) % 2) * n_units;
    sparse_step(n_units, n_inputs, slice, index, weight, W_in, bias, leak, u, before, after,
                z);
    for (long k = 0; k < n_inputs; k++) {
      vec sum = {0};
      long i = 0;
      for (; i + LANES <= n_units; i += LANES) sum += load(coef + k * n_units + i) * load(after + i);
      REAL y = intercept[k];
      for (; i < n_units; i++) y += coef[k * n_units + i] * after[i];
      for (long l = 0; l < LANES; l++) y += sum[l];
      outputs[k] = y;
    }
  }
  free(state);
  free(z);
}

/* W: (n_units, padded), rows padded with zeros */
void dense_run(long n_steps, long n_units, long n_inputs, const REAL *W, const REAL *W_in,
               const REAL *bias, REAL leak, const REAL *start, const REAL *inputs, REAL *states) {
  const long padded = (n_units + LANES - 1) / LANES * LANES;
  REAL *x = aligned_alloc(64, 2 * padded * sizeof(REAL)), *z = x + padded;
  memset(x, 0, 2 * padded * sizeof(REAL));
  const REAL *before = start;
  for (long t = 0; t < n_steps; t++, before = states, states += n_units) {
    memcpy(x, before, n_units * sizeof(REAL));
    long i = 0;
    for (; i + 4 <= n_units; i += 4) {
      const REAL *row = W + i * padded;
      vec sum[4] = {{0}, {0}, {0}, {0}};
      for (long j = 0; j < padded; j += LANES) {
        const vec part = load(x + j);
        for (int r = 0; r < 4; r++) sum[r] += load(row + r * padded + j) * part;
      }
      for (int r = 0; r < 4; r++) {
        z[i + r] = 0;
        for (long l = 0; l < LANES; l++) z[i + r] += sum[r][l];
      }
    }
    for (; i < n_units; i++) {
      vec sum = {0};
      for (long j = 0; j < padded; j += LANES) sum += load(W + i * padded + j) * load(x + j);
      z[i] = 0;
      for (long l = 0; l < LANES; l++) z[i] += sum[l];
    }
    for (i = 0; i < n_units; i += LANES) {
      const vec driven = drive(i, padded, n_inputs, W_in, bias, inputs + t * n_inputs);
      finish(load(z + i) + driven, before + i, states + i, n_units - i, leak);
    }
  }
  free(x);
}

/* BATCH sequences at once from state zero, W in CSR: a sparse matrix times a dense block.
 * inputs: (n_steps, n_inputs, BATCH); states: (BATCH, n_steps, n_units), each sequence contiguous.
 */
void batch_run(long n_steps, long n_units, long n_inputs, const int64_t *row, const uint32_t *index,
               const REAL *weight, const REAL *W_in, const REAL *bias, REAL leak,
               const REAL *inputs, REAL *states) {
  const long padded = (n_units + LANES - 1) / LANES * LANES;
  REAL *block = aligned_alloc(64, 2 * padded * BATCH * sizeof(REAL));
  memset(block, 0, 2 * padded * BATCH * sizeof(REAL));
  for (long t = 0; t < n_steps; t++) {
    const REAL *before = block + (t % 2) * padded * BATCH;
    REAL *after = block + ((t + 1) % 2) * padded * BATCH;
    for (long i = 0; i < n_units; i++) {
      vec z[VECTORS];
      for (int c = 0; c < VECTORS; c++) z[c] = spread(bias[i]);
      for (long k = 0; k < n_inputs; k++)
        for (int c = 0; c < VECTORS; c++)
          z[c] += W_in[k * padded + i] * load(inputs + (t * n_inputs + k) * BATCH + c * LANES);
      for (int64_t j = row[i]; j < row[i + 1]; j++) {
        const REAL *x = before + (long)index[j] * BATCH;
        for (int c = 0; c < VECTORS; c++) z[c] += weight[j] * load(x + c * LANES);
      }
      for (int c = 0; c < VECTORS; c++)
        finish(z[c], before + i * BATCH + c * LANES, after + i * BATCH + c * LANES, LANES, leak);
    }
    for (long i = 0; i < n_units; i += LANES) /* a block of rows stays in the nearest cache */
      for (long b = 0; b < BATCH; b++) {
        REAL *to = states + (b * n_steps + t) * n_units + i;
        const long count = n_units - i < LANES ? n_units - i : LANES;
        for (long l = 0; l < count; l++) to[l] = after[(i + l) * BATCH + b];
      }
  }
  free(block);
}
