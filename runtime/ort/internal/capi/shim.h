// The C half of package capi. Handles of ONNX Runtime are void pointers here; a
// status is NULL or an object whose ownership passes to the caller.
#ifndef ONNXRL_CAPI_SHIM_H
#define ONNXRL_CAPI_SHIM_H

#include <stddef.h>
#include <stdint.h>

// One tensor of a run. A data address is an integer because the caller has pinned
// the memory already. dtype 0 stands for an output that the library allocates, -1
// for a value that the caller made.
typedef struct {
  uintptr_t data;
  size_t bytes;
  int32_t dtype;
  int32_t rank;
} onnxrl_tensor;

void *onnxrl_open(const char *path);
int onnxrl_init(void *get_api_base, uint32_t version);
long onnxrl_live_values(void);

int onnxrl_status_code(void *status);
const char *onnxrl_status_message(void *status);
void onnxrl_status_release(void *status);

void *onnxrl_make_value(void *memory, uintptr_t data, size_t bytes, const int64_t *dims, size_t rank, int32_t dtype, void **out);
void *onnxrl_make_strings(const int64_t *dims, size_t rank, void **out);
void *onnxrl_set_string(void *value, size_t index, const void *text, size_t length);
void onnxrl_release_value(void *value);
void *onnxrl_value_type(void *value, int32_t *dtype, int64_t *dims, size_t capacity, size_t *rank);
void *onnxrl_value_data(void *value, void **data);
void *onnxrl_strings_length(void *value, size_t *bytes);
void *onnxrl_strings_content(void *value, void *text, size_t bytes, size_t *offsets, size_t count);

void *onnxrl_bind(void *binding, uintptr_t name, void *value, int output);
void *onnxrl_run(void *session, void *run_options, void *memory, void *input_names, void *output_names,
                 const onnxrl_tensor *tensors, const int64_t *dims, size_t inputs, size_t outputs, void **values, int flush);
void *onnxrl_run_bound(void *session, void *run_options, void *binding, int flush);
void *onnxrl_floor(void *session, void *binding, int flush, int64_t *nanoseconds, size_t runs);

void *onnxrl_port(void *session, int output, size_t index, int32_t *kind, int32_t *dtype, int64_t *dims, size_t capacity, size_t *rank);
void *onnxrl_port_count(void *session, int output, size_t *count);
void *onnxrl_add_external(void *options, const void *names, const void *values, size_t count);
void *onnxrl_deterministic(void *options);
void *onnxrl_providers(char ***names, int *count);
void onnxrl_release_providers(char **names, int count);
const char *onnxrl_build_info(void);

unsigned long onnxrl_float_mode(void);
void onnxrl_set_float_mode(unsigned long mode);

#endif
