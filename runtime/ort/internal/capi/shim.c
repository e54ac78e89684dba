//go:build cgo

#include "shim.h"
#include "table.h"

#include <time.h>

#ifndef _WIN32
#include <dlfcn.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

// The structure that OrtGetApiBase returns.
typedef struct {
  void *const *(*get_api)(uint32_t version);
  const char *(*get_version)(void);
} api_base;

void *const *onnxrl_api;
static long live_values;

typedef void *(*fn_p_pp)(void *, void **);
typedef void *(*fn_p_zp)(void *, size_t *);
typedef void *(*fn_p_ip)(void *, int32_t *);
typedef void (*fn_release)(void *);

void *onnxrl_open(const char *path) {
#ifdef _WIN32
  (void)path;
  return NULL;
#else
  // onnxruntime_go has loaded the library already: this only finds it again.
  void *library = dlopen(path, RTLD_LAZY);
  return library ? dlsym(library, "OrtGetApiBase") : NULL;
#endif
}

int onnxrl_init(void *get_api_base, uint32_t version) {
  const api_base *base = ((const api_base *(*)(void))get_api_base)();
  if (!base) return 1;
  void *const *table = base->get_api(version);
  if (!table) return 2;
  onnxrl_api = table;
  return 0;
}

long onnxrl_live_values(void) { return __atomic_load_n(&live_values, __ATOMIC_RELAXED); }

int onnxrl_status_code(void *status) { return CALL(GetErrorCode, int (*)(void *))(status); }

const char *onnxrl_status_message(void *status) { return CALL(GetErrorMessage, const char *(*)(void *))(status); }

void onnxrl_status_release(void *status) { CALL(ReleaseStatus, fn_release)(status); }

// Values

static void *counted(void *status) {
  if (!status) __atomic_add_fetch(&live_values, 1, __ATOMIC_RELAXED);
  return status;
}

void *onnxrl_make_value(void *memory, uintptr_t data, size_t bytes, const int64_t *dims, size_t rank, int32_t dtype, void **out) {
  return counted(CALL(CreateTensorWithDataAsOrtValue, void *(*)(void *, void *, size_t, const int64_t *, size_t, int32_t, void **))(
      memory, (void *)data, bytes, dims, rank, dtype, out));
}

void *onnxrl_make_strings(const int64_t *dims, size_t rank, void **out) {
  void *allocator = NULL;
  void *status = CALL(GetAllocatorWithDefaultOptions, void *(*)(void **))(&allocator);
  if (status) return status;
  return counted(CALL(CreateTensorAsOrtValue, void *(*)(void *, const int64_t *, size_t, int32_t, void **))(allocator, dims, rank, 8, out));
}

void *onnxrl_set_string(void *value, size_t index, const void *text, size_t length) {
  char *buffer = NULL;
  void *status = CALL(GetResizedStringTensorElementBuffer, void *(*)(void *, size_t, size_t, char **))(value, index, length, &buffer);
  if (status) return status;
  for (size_t i = 0; i < length; i++) buffer[i] = ((const char *)text)[i];
  return NULL;
}

void onnxrl_release_value(void *value) {
  CALL(ReleaseValue, fn_release)(value);
  __atomic_sub_fetch(&live_values, 1, __ATOMIC_RELAXED);
}

// type_of reads element type and shape. rank is the true rank even where it
// exceeds the capacity of dims, which then stays as it was.
static void *type_of(void *info, int32_t *dtype, int64_t *dims, size_t capacity, size_t *rank) {
  void *status = CALL(GetTensorElementType, fn_p_ip)(info, dtype);
  if (!status) status = CALL(GetDimensionsCount, fn_p_zp)(info, rank);
  if (!status && *rank > 0 && *rank <= capacity)
    status = CALL(GetDimensions, void *(*)(void *, int64_t *, size_t))(info, dims, *rank);
  return status;
}

void *onnxrl_value_type(void *value, int32_t *dtype, int64_t *dims, size_t capacity, size_t *rank) {
  void *info = NULL;
  void *status = CALL(GetTensorTypeAndShape, fn_p_pp)(value, &info);
  if (status) return status;
  status = type_of(info, dtype, dims, capacity, rank);
  CALL(ReleaseTensorTypeAndShapeInfo, fn_release)(info);
  return status;
}

void *onnxrl_value_data(void *value, void **data) { return CALL(GetTensorMutableData, fn_p_pp)(value, data); }

void *onnxrl_strings_length(void *value, size_t *bytes) { return CALL(GetStringTensorDataLength, fn_p_zp)(value, bytes); }

void *onnxrl_strings_content(void *value, void *text, size_t bytes, size_t *offsets, size_t count) {
  return CALL(GetStringTensorContent, void *(*)(void *, void *, size_t, size_t *, size_t))(value, text, bytes, offsets, count);
}

// Runs

unsigned long onnxrl_float_mode(void) {
#if defined(__x86_64__) || defined(_M_X64)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return (unsigned long)fpcr;
#else
  return 0;
#endif
}

void onnxrl_set_float_mode(unsigned long mode) {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_setcsr((unsigned int)mode);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
#else
  (void)mode;
#endif
}

// The bits that make denormal results and operands zero.
#if defined(__x86_64__) || defined(_M_X64)
#define FLUSH_BITS 0x8040UL
#elif defined(__aarch64__)
#define FLUSH_BITS (1UL << 24)
#else
#define FLUSH_BITS 0UL
#endif

static unsigned long enter(int flush) {
  if (!flush) return 0;
  unsigned long mode = onnxrl_float_mode();
  onnxrl_set_float_mode(mode | FLUSH_BITS);
  return mode;
}

static void leave(int flush, unsigned long mode) {
  // The thread returns to Go code, whose arithmetic must not depend on which
  // thread it runs on.
  if (flush) onnxrl_set_float_mode(mode);
}

void *onnxrl_bind(void *binding, uintptr_t name, void *value, int output) {
  return CALL(output ? BindOutput : BindInput, void *(*)(void *, const char *, void *))(binding, (const char *)name, value);
}

void *onnxrl_run(void *session, void *run_options, void *memory, void *input_names, void *output_names,
                 const onnxrl_tensor *tensors, const int64_t *dims, size_t inputs, size_t outputs, void **values, int flush) {
  size_t total = inputs + outputs, made = 0;
  void *status = NULL;
  for (; made < total; made++) {
    const onnxrl_tensor *t = &tensors[made];
    if (t->dtype > 0) {
      values[made] = NULL;
      status = onnxrl_make_value(memory, t->data, t->bytes, dims, (size_t)t->rank, t->dtype, &values[made]);
      if (status) break;
    }
    dims += t->rank;
  }
  if (!status) {
    unsigned long mode = enter(flush);
    status = CALL(Run, void *(*)(void *, void *, void *, void **, size_t, void *, size_t, void **))(
        session, run_options, input_names, values, inputs, output_names, outputs, values + inputs);
    leave(flush, mode);
    for (size_t i = inputs; i < total; i++)
      if (tensors[i].dtype == 0 && values[i]) __atomic_add_fetch(&live_values, 1, __ATOMIC_RELAXED);
  }
  for (size_t i = 0; i < made; i++) {
    // Values that the caller made stay the caller's; allocated outputs pass to the
    // caller if the run succeeded.
    if (tensors[i].dtype > 0 || (status && tensors[i].dtype == 0 && values[i])) {
      onnxrl_release_value(values[i]);
      values[i] = NULL;
    }
  }
  return status;
}

typedef void *(*fn_run_bound)(void *, void *, void *);

void *onnxrl_run_bound(void *session, void *run_options, void *binding, int flush) {
  unsigned long mode = enter(flush);
  void *status = CALL(RunWithBinding, fn_run_bound)(session, run_options, binding);
  leave(flush, mode);
  return status;
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void *onnxrl_floor(void *session, void *binding, int flush, int64_t *nanoseconds, size_t runs) {
  fn_run_bound run = CALL(RunWithBinding, fn_run_bound);
  void *status = NULL;
  unsigned long mode = enter(flush);
  int64_t before = now();
  for (size_t i = 0; i < runs && !status; i++) {
    status = run(session, NULL, binding);
    int64_t after = now();
    nanoseconds[i] = after - before;
    before = after;
  }
  leave(flush, mode);
  return status;
}

// Sessions and their options

void *onnxrl_port_count(void *session, int output, size_t *count) {
  return CALL(output ? SessionGetOutputCount : SessionGetInputCount, fn_p_zp)(session, count);
}

void *onnxrl_port(void *session, int output, size_t index, int32_t *kind, int32_t *dtype, int64_t *dims, size_t capacity, size_t *rank) {
  void *info = NULL, *tensor = NULL;
  void *status = CALL(output ? SessionGetOutputTypeInfo : SessionGetInputTypeInfo, void *(*)(void *, size_t, void **))(session, index, &info);
  if (status) return status;
  status = CALL(GetOnnxTypeFromTypeInfo, fn_p_ip)(info, kind);
  // The tensor's information belongs to the type's.
  if (!status && *kind == 1) status = CALL(CastTypeInfoToTensorInfo, fn_p_pp)(info, &tensor);
  if (!status && tensor) status = type_of(tensor, dtype, dims, capacity, rank);
  CALL(ReleaseTypeInfo, fn_release)(info);
  return status;
}

void *onnxrl_add_external(void *options, const void *names, const void *values, size_t count) {
  return CALL(AddExternalInitializers, void *(*)(void *, const void *, const void *, size_t))(options, names, values, count);
}

void *onnxrl_deterministic(void *options) {
  return CALL(SetDeterministicCompute, void *(*)(void *, _Bool))(options, 1);
}

void *onnxrl_providers(char ***names, int *count) {
  return CALL(GetAvailableProviders, void *(*)(char ***, int *))(names, count);
}

void onnxrl_release_providers(char **names, int count) {
  void *status = CALL(ReleaseAvailableProviders, void *(*)(char **, int))(names, count);
  if (status) onnxrl_status_release(status);
}

const char *onnxrl_build_info(void) { return CALL(GetBuildInfoString, const char *(*)(void))(); }
