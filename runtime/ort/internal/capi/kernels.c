//go:build cgo

#include "kernel.h"

#include <stdlib.h>

void *onnxrl_fail(const char *text) { return CALL(CreateStatus, void *(*)(int, const char *))(1, text); }

void *onnxrl_ints(const void *info, const char *name, int64_t *out, size_t *n) {
  return CALL(KernelInfoGetAttributeArray_int64, void *(*)(const void *, const char *, int64_t *, size_t *))(info, name, out, n);
}

void *onnxrl_input(void *context, size_t i, size_t bytes, const void **out) {
  void *value = NULL;
  size_t has = 0;
  void *status = CALL(KernelContext_GetInput, void *(*)(void *, size_t, void **))(context, i, &value);
  if (!status) status = CALL(GetTensorMutableData, void *(*)(void *, void **))(value, (void **)out);
  if (!status) status = CALL(GetTensorSizeInBytes, void *(*)(void *, size_t *))(value, &has);
  if (!status && has != bytes) status = onnxrl_fail("an input has another size than the model says");
  return status;
}

void *onnxrl_output(void *context, size_t i, const int64_t *shape, size_t rank, void **out) {
  void *value = NULL;
  void *status = CALL(KernelContext_GetOutput, void *(*)(void *, size_t, const int64_t *, size_t, void **))(context, i, shape, rank, &value);
  if (!status) status = CALL(GetTensorMutableData, void *(*)(void *, void **))(value, out);
  return status;
}

void *onnxrl_parallel(void *context, void (*part)(void *data, size_t i), size_t n, void *data) {
  return CALL(KernelContext_ParallelFor, void *(*)(void *, void (*)(void *, size_t), size_t, size_t, void *))(context, part, n, 0, data);
}

void *onnxrl_create(size_t size, void *(*parse)(void *kernel, const void *info), const void *info, void **out) {
  void *k = calloc(1, size);
  if (!k) return onnxrl_fail("no memory for a kernel");
  void *status = parse(k, info);
  if (status) {
    free(k);
    return status;
  }
  *out = k;
  return NULL;
}

int onnxrl_float32(const void *op, size_t i) {
  (void)op, (void)i;
  return 1;
}
size_t onnxrl_one(const void *op) {
  (void)op;
  return 1;
}
int onnxrl_required(const void *op, size_t i) {
  (void)op, (void)i;
  return 0;
}
int onnxrl_yes(const void *op) {
  (void)op;
  return 1;
}
const char *onnxrl_cpu(const void *op) {
  (void)op;
  return NULL;
}
void onnxrl_destroy(void *kernel) { free(kernel); }

// The library calls those that return a status instead.
void *onnxrl_create_v1(const void *op, const void *table, const void *info) {
  (void)op, (void)table, (void)info;
  return NULL;
}
void onnxrl_compute_v1(void *kernel, void *context) { (void)kernel, (void)context; }

void *onnxrl_add_kernels(void *options) {
  // One for the process: it outlives every session.
  static void *domain;
  void *known = __atomic_load_n(&domain, __ATOMIC_ACQUIRE);
  if (!known) {
    void *made = NULL;
    void *status = CALL(CreateCustomOpDomain, void *(*)(const char *, void **))(ONNXRL_DOMAIN, &made);
    void *(*add)(void *, const void *) = CALL(CustomOpDomain_Add, void *(*)(void *, const void *));
    if (!status) status = add(made, &onnxrl_elementwise);
    if (!status) status = add(made, &onnxrl_max_pool);
    if (status) return status;
    if (__atomic_compare_exchange_n(&domain, &known, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      known = made;
    } else {
      CALL(ReleaseCustomOpDomain, void (*)(void *))(made);
    }
  }
  return CALL(AddCustomOpDomain, void *(*)(void *, void *))(options, known);
}
