//go:build cgo

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

// Elements that all steps are applied to before the next ones: what they need stays in the first
// level of the cache.
#define BLOCK 256
// Elements from which on a node is worth several threads, and those of one part.
#define PARALLEL 65536
#define PART 16384

typedef struct {
  size_t inner, count;
} extent;

typedef struct {
  int op, dst, a, b;
} step;

typedef struct {
  size_t rank, total, inputs, constants, steps;
  int64_t shape[ONNXRL_MOST_RANK];
  extent extents[ONNXRL_MOST_INPUTS];
  float constant[ONNXRL_MOST_CONSTANTS];
  step step[ONNXRL_MOST_STEPS];
} kernel;

// Operations on n elements. d may be a or b. Whether a or b is one number for all is part of the
// name: v for a vector, s for a scalar.

#define BINARY(name, op)                                                                       \
  CLONES static void name##_vv(float *d, const float *a, const float *b, size_t n) {           \
    _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) d[i] = a[i] op b[i];                   \
  }                                                                                            \
  CLONES static void name##_vs(float *d, const float *a, float b, size_t n) {                  \
    _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) d[i] = a[i] op b;                      \
  }                                                                                            \
  CLONES static void name##_sv(float *d, float a, const float *b, size_t n) {                  \
    _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) d[i] = a op b[i];                      \
  }

BINARY(add, +)
BINARY(sub, -)
BINARY(mul, *)
BINARY(div, /)

#define UNARY(name, expression)                                                  \
  CLONES static void name(float *d, const float *a, size_t n) {                  \
    _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) {                        \
      float x = a[i];                                                            \
      d[i] = expression;                                                         \
    }                                                                            \
  }

UNARY(neg, -x)
UNARY(absolute, __builtin_fabsf(x))
// A NaN stays one.
UNARY(relu, x < 0 ? 0 : x)
UNARY(clamp, x < 0 ? 0 : x > 1 ? 1 : x)

// spread writes elements [at, at+n) of an input as the output sees them.
static void spread(float *d, const float *x, extent e, size_t at, size_t n) {
  size_t k = at / e.inner % e.count, within = at % e.inner;
  if (e.inner == 1) {
    while (n > 0) {
      size_t run = e.count - k < n ? e.count - k : n;
      memcpy(d, x + k, run * sizeof *d);
      d += run, n -= run, k = 0;
    }
    return;
  }
  while (n > 0) {
    size_t run = e.inner - within < n ? e.inner - within : n;
    float v = x[k];
    for (size_t i = 0; i < run; i++) d[i] = v;
    d += run, n -= run, within = 0;
    if (++k == e.count) k = 0;
  }
}

typedef struct {
  const kernel *k;
  const float *in[ONNXRL_MOST_INPUTS];
  float *out;
  size_t part;
} job;

// An operand of a step: a vector, or a number where v is NULL.
typedef struct {
  const float *v;
  float s;
} operand;

static void binary(int op, float *d, operand a, operand b, size_t n) {
#define CASES(name)                            \
  if (a.v && b.v) name##_vv(d, a.v, b.v, n);   \
  else if (a.v) name##_vs(d, a.v, b.s, n);     \
  else name##_sv(d, a.s, b.v, n);              \
  return;
  switch (op) {
  case ONNXRL_ADD: CASES(add)
  case ONNXRL_SUB: CASES(sub)
  case ONNXRL_MUL: CASES(mul)
  case ONNXRL_DIV: CASES(div)
  }
#undef CASES
}

static void block(const job *j, size_t at, size_t n) {
  const kernel *k = j->k;
  _Alignas(64) float slots[ONNXRL_MOST_SLOTS][BLOCK], spreads[ONNXRL_MOST_INPUTS][BLOCK];
  operand all[ONNXRL_MOST_INPUTS + ONNXRL_MOST_CONSTANTS + ONNXRL_MOST_SLOTS];
  for (size_t i = 0; i < k->inputs; i++) {
    extent e = k->extents[i];
    all[i] = (operand){NULL, 0};
    if (e.count == k->total) {
      all[i].v = j->in[i] + at;
    } else if (e.count == 1) {
      all[i].s = j->in[i][0];
    } else {
      spread(spreads[i], j->in[i], e, at, n);
      all[i].v = spreads[i];
    }
  }
  operand *constants = all + k->inputs, *slot = constants + k->constants;
  for (size_t i = 0; i < k->constants; i++) constants[i] = (operand){NULL, k->constant[i]};
  for (size_t i = 0; i < ONNXRL_MOST_SLOTS; i++) slot[i] = (operand){slots[i], 0};
  for (size_t i = 0; i < k->steps; i++) {
    step s = k->step[i];
    float *d = i + 1 == k->steps ? j->out + at : slots[s.dst];
    operand a = all[s.a];
    switch (s.op) {
    case ONNXRL_NEG: neg(d, a.v, n); break;
    case ONNXRL_ABS: absolute(d, a.v, n); break;
    case ONNXRL_RELU: relu(d, a.v, n); break;
    case ONNXRL_CLAMP: clamp(d, a.v, n); break;
    default: binary(s.op, d, a, all[s.b], n);
    }
  }
}

static void span(const job *j, size_t from, size_t to) {
  for (size_t at = from; at < to; at += BLOCK) block(j, at, to - at < BLOCK ? to - at : BLOCK);
}

static void part(void *data, size_t i) {
  const job *j = data;
  size_t to = (i + 1) * j->part;
  span(j, i * j->part, to < j->k->total ? to : j->k->total);
}

static void *compute(void *op_kernel, void *context) {
  const kernel *k = op_kernel;
  job j = {.k = k, .part = PART};
  for (size_t i = 0; i < k->inputs; i++) {
    void *status = onnxrl_input(context, i, k->extents[i].count * sizeof(float), (const void **)&j.in[i]);
    if (status) return status;
  }
  void *status = onnxrl_output(context, 0, k->shape, k->rank, (void **)&j.out);
  if (status) return status;
  if (k->total < PARALLEL) {
    span(&j, 0, k->total);
    return NULL;
  }
  return onnxrl_parallel(context, part, (k->total + PART - 1) / PART, &j);
}

// Making a kernel


// parse reads the attributes. What package ort writes is always right; a model file of somebody
// else is refused where it would make a kernel read or write what is not its own.
static void *parse(void *made, const void *info) {
  kernel *k = made;
  int64_t extents[2 * ONNXRL_MOST_INPUTS], steps[4 * ONNXRL_MOST_STEPS];
  size_t rank = ONNXRL_MOST_RANK, pairs = 2 * ONNXRL_MOST_INPUTS, constants = ONNXRL_MOST_CONSTANTS, fours = 4 * ONNXRL_MOST_STEPS, ports = 0;
  void *status = onnxrl_ints(info, "shape", k->shape, &rank);
  if (!status) status = onnxrl_ints(info, "extents", extents, &pairs);
  if (!status) status = onnxrl_ints(info, "steps", steps, &fours);
  if (!status) status = CALL(KernelInfoGetAttributeArray_float, void *(*)(const void *, const char *, float *, size_t *))(info, "constants", k->constant, &constants);
  if (!status) status = CALL(KernelInfo_GetInputCount, void *(*)(const void *, size_t *))(info, &ports);
  if (status) return status;
  k->rank = rank, k->inputs = pairs / 2, k->constants = constants, k->steps = fours / 4;
  if (pairs % 2 || fours % 4 || !k->steps || ports != k->inputs) return onnxrl_fail("a chain has attributes that do not fit");
  k->total = 1;
  for (size_t i = 0; i < rank; i++) {
    if (k->shape[i] < 1 || k->total > SIZE_MAX / 8 / (size_t)k->shape[i]) return onnxrl_fail("a chain has an extent that does not fit");
    k->total *= (size_t)k->shape[i];
  }
  for (size_t i = 0; i < k->inputs; i++) {
    if (extents[2 * i] < 1 || extents[2 * i + 1] < 1) return onnxrl_fail("a chain has an input that does not fit");
    k->extents[i] = (extent){(size_t)extents[2 * i], (size_t)extents[2 * i + 1]};
    if (k->extents[i].count == k->total && k->extents[i].inner != 1) return onnxrl_fail("a chain has an input that does not fit");
  }
  int64_t numbers = (int64_t)(k->inputs + k->constants), operands = numbers + ONNXRL_MOST_SLOTS;
  char written[ONNXRL_MOST_SLOTS] = {0};
  for (size_t i = 0; i < k->steps; i++) {
    const int64_t *s = steps + 4 * i;
    if (s[0] < 0 || s[0] >= ONNXRL_OPS || s[1] < 0 || s[1] >= ONNXRL_MOST_SLOTS) return onnxrl_fail("a chain has a step that does not fit");
    int vectors = 0;
    for (int o = 2; o < 4; o++) {
      if (s[o] < 0 || s[o] >= operands || (s[o] >= numbers && !written[s[o] - numbers])) return onnxrl_fail("a chain has an operand that does not fit");
      int vector = s[o] >= numbers || (s[o] < (int64_t)k->inputs && (k->extents[s[o]].count > 1 || k->total == 1));
      if (o == 2 || s[0] <= ONNXRL_DIV) vectors += vector;
    }
    if (!vectors) return onnxrl_fail("a chain has a step of numbers alone");
    k->step[i] = (step){(int)s[0], (int)s[1], (int)s[2], (int)s[3]};
    written[s[1]] = 1;
  }
  return NULL;
}

static void *create(const void *op, const void *table, const void *info, void **out) {
  (void)op, (void)table;
  return onnxrl_create(sizeof(kernel), parse, info, out);
}

static const char *name_of(const void *op) {
  (void)op;
  return ONNXRL_ELEMENTWISE;
}
static int variadic(const void *op, size_t i) {
  (void)op, (void)i;
  return 2;
}

const custom_op onnxrl_elementwise = {
    ONNXRL_OP_COMMON,
    .GetName = name_of,
    .GetOutputType = onnxrl_float32,
    .GetOutputTypeCount = onnxrl_one,
    .GetInputCharacteristic = variadic,
    .CreateKernelV2 = create,
    .KernelComputeV2 = compute,
};
