//go:build cgo

#include "kernel.h"

#include <math.h>
#include <stdlib.h>

// Planes of which so many elements are one part of several threads' work.
#define PARALLEL 65536

typedef struct {
  int64_t shape[4];
  int64_t w[ONNXRL_WINDOW];
} kernel;

typedef struct {
  const kernel *k;
  const float *x;
  float *y;
  int64_t *index;
  size_t planes; // of one part
} job;

// tap takes the larger of what is there and one column of the kernel, for n places of a row of the
// output; base is the index of x[0]. Equal values leave the earlier one.
#define TAP(stride)                                          \
  _Pragma("GCC ivdep") for (int32_t o = 0; o < n; o++) {     \
    float v = x[o * (stride)];                               \
    int32_t i = base + o * (stride), take = v > best[o];     \
    best[o] = take ? v : best[o];                            \
    at[o] = take ? i : at[o];                                \
  }

CLONES static void tap(float *restrict best, int32_t *restrict at, const float *restrict x, int32_t base, int32_t n, int32_t stride) {
  // The usual strides are constants, with which a compiler makes vectors.
  if (stride == 1) {
    TAP(1)
  } else if (stride == 2) {
    TAP(2)
  } else {
    TAP(stride)
  }
}

// WINDOW takes the largest of whole windows, for n places of a row of the output. With constants the
// windows of neighbouring places are one vector's lanes.
#define WINDOW(size, stride)                                    \
  _Pragma("GCC ivdep") for (int32_t o = 0; o < n; o++) {        \
    float most = -INFINITY;                                     \
    int32_t where = -1;                                         \
    for (int32_t r = 0; r < (size); r++) {                      \
      for (int32_t c = 0; c < (size); c++) {                    \
        int32_t i = o * (stride) + r * width + c;               \
        int32_t take = x[i] > most;                             \
        most = take ? x[i] : most;                              \
        where = take ? base + i : where;                        \
      }                                                         \
    }                                                           \
    best[o] = most;                                             \
    at[o] = where;                                              \
  }

CLONES static void window(float *restrict best, int32_t *restrict at, const float *restrict x, int32_t base, int32_t n, int32_t width, int32_t size, int32_t stride) {
  if (size == 2 && stride == 2) {
    WINDOW(2, 2)
  } else if (size == 3 && stride == 2) {
    WINDOW(3, 2)
  } else if (size == 3 && stride == 1) {
    WINDOW(3, 1)
  }
}

// usual reports whether window has the kernel of w.
static int usual(const int64_t *w) {
  int64_t size = w[ONNXRL_KERNEL_WIDTH], stride = w[ONNXRL_STRIDE_WIDTH];
  return w[ONNXRL_KERNEL_HEIGHT] == size && w[ONNXRL_DILATION_HEIGHT] == 1 && w[ONNXRL_DILATION_WIDTH] == 1 &&
         ((size == 2 && stride == 2) || (size == 3 && (stride == 1 || stride == 2)));
}

// first_of finds the first element of a window: nothing in it is above -inf.
static int32_t first_of(const int64_t *w, int64_t row, int64_t column) {
  int64_t y = row * w[ONNXRL_STRIDE_HEIGHT] - w[ONNXRL_PAD_TOP], x = column * w[ONNXRL_STRIDE_WIDTH] - w[ONNXRL_PAD_LEFT];
  while (y < 0) y += w[ONNXRL_DILATION_HEIGHT];
  while (x < 0) x += w[ONNXRL_DILATION_WIDTH];
  return (int32_t)(y * w[ONNXRL_WIDTH] + x);
}

static void plane(const int64_t *w, const float *x, float *y, int64_t *index, int64_t offset, int32_t *at) {
  int64_t height = w[ONNXRL_HEIGHT], width = w[ONNXRL_WIDTH], columns = w[ONNXRL_OUT_WIDTH], stride = w[ONNXRL_STRIDE_WIDTH];
  for (int64_t r = 0; r < w[ONNXRL_OUT_HEIGHT]; r++) {
    float *best = y + r * columns;
    for (int64_t o = 0; o < columns; o++) best[o] = -INFINITY, at[o] = -1;
    int64_t top = r * w[ONNXRL_STRIDE_HEIGHT] - w[ONNXRL_PAD_TOP], left = w[ONNXRL_PAD_LEFT], kernel_width = w[ONNXRL_KERNEL_WIDTH];
    // Places whose windows lie within the image; the others' are taken tap by tap.
    int64_t inner = (left + stride - 1) / stride, end = width + left < kernel_width ? 0 : (width + left - kernel_width) / stride + 1;
    if (end > columns) end = columns;
    if (!usual(w) || top < 0 || top + w[ONNXRL_KERNEL_HEIGHT] > height || end <= inner) {
      inner = end = 0;
    } else {
      int64_t element = top * width + inner * stride - left;
      window(best + inner, at + inner, x + element, (int32_t)element, (int32_t)(end - inner), (int32_t)width, (int32_t)kernel_width, (int32_t)stride);
    }
    for (int64_t i = 0; i < w[ONNXRL_KERNEL_HEIGHT] && end - inner < columns; i++) {
      int64_t row = r * w[ONNXRL_STRIDE_HEIGHT] - w[ONNXRL_PAD_TOP] + i * w[ONNXRL_DILATION_HEIGHT];
      if (row < 0 || row >= height) continue;
      for (int64_t j = 0; j < w[ONNXRL_KERNEL_WIDTH]; j++) {
        // Places whose element lies in the image.
        int64_t first = j * w[ONNXRL_DILATION_WIDTH] - w[ONNXRL_PAD_LEFT];
        int64_t from = first < 0 ? (-first + stride - 1) / stride : 0;
        int64_t to = width > first ? (width - 1 - first) / stride + 1 : 0;
        if (to > columns) to = columns;
        if (from >= to) continue;
        int64_t parts[2][2] = {{from, inner < to ? inner : to}, {end > from ? end : from, to}};
        if (end == 0) parts[0][1] = from;
        for (int p = 0; p < 2; p++) {
          int64_t o = parts[p][0], n = parts[p][1] - o, element = row * width + first + o * stride;
          if (n > 0) tap(best + o, at + o, x + element, (int32_t)element, (int32_t)n, (int32_t)stride);
        }
      }
    }
    for (int64_t o = 0; o < columns; o++) {
      if (at[o] < 0) best[o] = x[at[o] = first_of(w, r, o)];
    }
    for (int64_t o = 0; o < columns; o++) index[r * columns + o] = offset + at[o];
  }
}

static void part(void *data, size_t i) {
  const job *j = data;
  const int64_t *w = j->k->w;
  int64_t in = w[ONNXRL_HEIGHT] * w[ONNXRL_WIDTH], out = w[ONNXRL_OUT_HEIGHT] * w[ONNXRL_OUT_WIDTH];
  int64_t p = (int64_t)(i * j->planes), to = p + (int64_t)j->planes;
  int32_t *at = malloc((size_t)w[ONNXRL_OUT_WIDTH] * sizeof *at);
  if (!at) abort(); // as ONNX Runtime's own allocator, a moment later
  for (to = to < w[ONNXRL_PLANES] ? to : w[ONNXRL_PLANES]; p < to; p++) plane(w, j->x + p * in, j->y + p * out, j->index + p * out, p * in, at);
  free(at);
}

static void *compute(void *op_kernel, void *context) {
  const kernel *k = op_kernel;
  const int64_t *w = k->w;
  size_t in = (size_t)(w[ONNXRL_HEIGHT] * w[ONNXRL_WIDTH]), planes = (size_t)w[ONNXRL_PLANES];
  job j = {.k = k, .planes = PARALLEL / in + 1};
  void *status = onnxrl_input(context, 0, planes * in * sizeof(float), (const void **)&j.x);
  if (!status) status = onnxrl_output(context, 0, k->shape, 4, (void **)&j.y);
  if (!status) status = onnxrl_output(context, 1, k->shape, 4, (void **)&j.index);
  if (status) return status;
  if (j.planes < planes) return onnxrl_parallel(context, part, (planes + j.planes - 1) / j.planes, &j);
  part(&j, 0);
  return NULL;
}

// parse refuses a window with places that have no element, and images whose elements an int32 does
// not count.
static void *parse(void *made, const void *info) {
  kernel *k = made;
  size_t rank = 4, n = ONNXRL_WINDOW;
  void *status = onnxrl_ints(info, "shape", k->shape, &rank);
  if (!status) status = onnxrl_ints(info, "window", k->w, &n);
  if (status) return status;
  const int64_t *w = k->w, most = 1 << 15;
  int fits = rank == 4 && n == ONNXRL_WINDOW && w[ONNXRL_PLANES] > 0 && w[ONNXRL_PLANES] < INT32_MAX;
  for (size_t i = ONNXRL_HEIGHT; fits && i < ONNXRL_WINDOW; i++) fits = w[i] >= (i == ONNXRL_PAD_TOP || i == ONNXRL_PAD_LEFT ? 0 : 1) && w[i] <= most;
  for (int a = 0; fits && a < 2; a++) {
    int64_t size = w[ONNXRL_HEIGHT + a], out = w[ONNXRL_OUT_HEIGHT + a], kernel_size = w[ONNXRL_KERNEL_HEIGHT + a];
    int64_t step = w[ONNXRL_STRIDE_HEIGHT + a], pad = w[ONNXRL_PAD_TOP + a], dilation = w[ONNXRL_DILATION_HEIGHT + a];
    for (int64_t o = 0; fits && o < out; o++) {
      int any = 0;
      for (int64_t t = 0; t < kernel_size && !any; t++) any = o * step - pad + t * dilation >= 0 && o * step - pad + t * dilation < size;
      fits = any;
    }
  }
  fits = fits && k->shape[0] > 0 && k->shape[1] > 0 && k->shape[0] <= w[ONNXRL_PLANES] && k->shape[0] * k->shape[1] == w[ONNXRL_PLANES] &&
         k->shape[2] == w[ONNXRL_OUT_HEIGHT] && k->shape[3] == w[ONNXRL_OUT_WIDTH];
  return fits ? NULL : onnxrl_fail("a pooling has a window that does not fit");
}

static void *create(const void *op, const void *table, const void *info, void **out) {
  (void)op, (void)table;
  return onnxrl_create(sizeof(kernel), parse, info, out);
}

static const char *name_of(const void *op) {
  (void)op;
  return ONNXRL_MAX_POOL;
}
static int output_of(const void *op, size_t i) {
  (void)op;
  return i == 0 ? 1 : 7; // float32, int64
}
static size_t outputs_of(const void *op) {
  (void)op;
  return 2;
}

const custom_op onnxrl_max_pool = {
    ONNXRL_OP_COMMON,
    .GetName = name_of,
    .GetOutputType = output_of,
    .GetOutputTypeCount = outputs_of,
    .GetInputCharacteristic = onnxrl_required,
    .CreateKernelV2 = create,
    .KernelComputeV2 = compute,
};
