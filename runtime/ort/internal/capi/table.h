// What the C files of this package know of the library.
#ifndef ONNXRL_CAPI_TABLE_H
#define ONNXRL_CAPI_TABLE_H

#include <stddef.h>
#include <stdint.h>

// Positions in the library's table of functions; TestFunctionTable compares them
// with the header.
enum {
  CreateStatus = 0,
  GetErrorCode = 1,
  GetErrorMessage = 2,
  Run = 9,
  CreateCustomOpDomain = 26,
  CustomOpDomain_Add = 27,
  AddCustomOpDomain = 28,
  SessionGetInputCount = 30,
  SessionGetOutputCount = 31,
  SessionGetInputTypeInfo = 33,
  SessionGetOutputTypeInfo = 34,
  CreateTensorAsOrtValue = 48,
  CreateTensorWithDataAsOrtValue = 49,
  GetTensorMutableData = 51,
  GetStringTensorDataLength = 53,
  GetStringTensorContent = 54,
  CastTypeInfoToTensorInfo = 55,
  GetOnnxTypeFromTypeInfo = 56,
  GetTensorElementType = 60,
  GetDimensionsCount = 61,
  GetDimensions = 62,
  GetTensorTypeAndShape = 65,
  GetAllocatorWithDefaultOptions = 78,
  KernelContext_GetInput = 90,
  KernelContext_GetOutput = 91,
  ReleaseStatus = 93,
  ReleaseValue = 96,
  ReleaseTypeInfo = 98,
  ReleaseTensorTypeAndShapeInfo = 99,
  ReleaseCustomOpDomain = 101,
  GetAvailableProviders = 125,
  ReleaseAvailableProviders = 126,
  RunWithBinding = 133,
  BindInput = 136,
  BindOutput = 137,
  KernelInfoGetAttributeArray_float = 162,
  KernelInfoGetAttributeArray_int64 = 163,
  AddExternalInitializers = 210,
  KernelInfo_GetInputCount = 230,
  GetResizedStringTensorElementBuffer = 252,
  GetBuildInfoString = 254,
  SetDeterministicCompute = 273,
  KernelContext_ParallelFor = 274,
  GetTensorSizeInBytes = 318,
};

extern void *const *onnxrl_api;

#define CALL(index, type) ((type)onnxrl_api[index])

// The library's OrtCustomOp; TestFunctionTable compares it with the header.
typedef struct {
  uint32_t version;
  void *(*CreateKernel)(const void *, const void *, const void *);
  const char *(*GetName)(const void *);
  const char *(*GetExecutionProviderType)(const void *);
  int (*GetInputType)(const void *, size_t);
  size_t (*GetInputTypeCount)(const void *);
  int (*GetOutputType)(const void *, size_t);
  size_t (*GetOutputTypeCount)(const void *);
  void (*KernelCompute)(void *, void *);
  void (*KernelDestroy)(void *);
  int (*GetInputCharacteristic)(const void *, size_t);
  int (*GetOutputCharacteristic)(const void *, size_t);
  int (*GetInputMemoryType)(const void *, size_t);
  int (*GetVariadicInputMinArity)(const void *);
  int (*GetVariadicInputHomogeneity)(const void *);
  int (*GetVariadicOutputMinArity)(const void *);
  int (*GetVariadicOutputHomogeneity)(const void *);
  void *(*CreateKernelV2)(const void *, const void *, const void *, void **);
  void *(*KernelComputeV2)(void *, void *);
  void *(*InferOutputShapeFn)(const void *, void *);
  int (*GetStartVersion)(const void *);
  int (*GetEndVersion)(const void *);
  size_t (*GetMayInplace)(int **, int **);
  void (*ReleaseMayInplace)(int *, int *);
  size_t (*GetAliasMap)(int **, int **);
  void (*ReleaseAliasMap)(int *, int *);
} custom_op;

#endif
