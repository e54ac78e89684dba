// What the operators of ours share.
#ifndef ONNXRL_CAPI_KERNEL_H
#define ONNXRL_CAPI_KERNEL_H

#include "kernels.h"
#include "table.h"

// glibc chooses among the clones of a function when the program starts; elsewhere there is one, of
// the instructions that every processor of the architecture has.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CLONES
#endif

// An error of a kernel.
void *onnxrl_fail(const char *text);
// onnxrl_ints reads an attribute of at most n integers, and says in n how many there are.
void *onnxrl_ints(const void *info, const char *name, int64_t *out, size_t *n);
// onnxrl_input finds the memory of an input, which must have so many bytes.
void *onnxrl_input(void *context, size_t i, size_t bytes, const void **out);
void *onnxrl_output(void *context, size_t i, const int64_t *shape, size_t rank, void **out);
// onnxrl_parallel calls part(data, i) for each i below n, on as many threads as the session has.
void *onnxrl_parallel(void *context, void (*part)(void *data, size_t i), size_t n, void *data);
// onnxrl_create allocates a kernel and has it read its attributes.
void *onnxrl_create(size_t size, void *(*parse)(void *kernel, const void *info), const void *info, void **out);

// What all operators answer: one input of float32 on the CPU, required outputs.
int onnxrl_float32(const void *op, size_t i);
size_t onnxrl_one(const void *op);
int onnxrl_required(const void *op, size_t i);
int onnxrl_yes(const void *op);
void *onnxrl_create_v1(const void *op, const void *table, const void *info);
void onnxrl_compute_v1(void *kernel, void *context);
void onnxrl_destroy(void *kernel);
const char *onnxrl_cpu(const void *op);

#define ONNXRL_OP_COMMON                                                            \
  .version = 24, .CreateKernel = onnxrl_create_v1, .KernelCompute = onnxrl_compute_v1, \
  .GetExecutionProviderType = onnxrl_cpu, .KernelDestroy = onnxrl_destroy,          \
  .GetInputType = onnxrl_float32, .GetInputTypeCount = onnxrl_one,                  \
  .GetOutputCharacteristic = onnxrl_required, .GetInputMemoryType = onnxrl_required, \
  .GetVariadicInputMinArity = onnxrl_yes, .GetVariadicInputHomogeneity = onnxrl_yes, \
  .GetVariadicOutputMinArity = onnxrl_yes, .GetVariadicOutputHomogeneity = onnxrl_yes

extern const custom_op onnxrl_elementwise, onnxrl_max_pool;

#endif
