package grpcapi

import (
	"context"

	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
)

// SystemSharedMemoryStatus is not supported.
func (s *service) SystemSharedMemoryStatus(context.Context, *inference.SystemSharedMemoryStatusRequest) (*inference.SystemSharedMemoryStatusResponse, error) {
	return nil, notSupported("shared memory")
}

// SystemSharedMemoryRegister is not supported.
func (s *service) SystemSharedMemoryRegister(context.Context, *inference.SystemSharedMemoryRegisterRequest) (*inference.SystemSharedMemoryRegisterResponse, error) {
	return nil, notSupported("shared memory")
}

// SystemSharedMemoryUnregister is not supported.
func (s *service) SystemSharedMemoryUnregister(context.Context, *inference.SystemSharedMemoryUnregisterRequest) (*inference.SystemSharedMemoryUnregisterResponse, error) {
	return nil, notSupported("shared memory")
}

// CudaSharedMemoryStatus is not supported.
func (s *service) CudaSharedMemoryStatus(context.Context, *inference.CudaSharedMemoryStatusRequest) (*inference.CudaSharedMemoryStatusResponse, error) {
	return nil, notSupported("shared memory")
}

// CudaSharedMemoryRegister is not supported.
func (s *service) CudaSharedMemoryRegister(context.Context, *inference.CudaSharedMemoryRegisterRequest) (*inference.CudaSharedMemoryRegisterResponse, error) {
	return nil, notSupported("shared memory")
}

// CudaSharedMemoryUnregister is not supported.
func (s *service) CudaSharedMemoryUnregister(context.Context, *inference.CudaSharedMemoryUnregisterRequest) (*inference.CudaSharedMemoryUnregisterResponse, error) {
	return nil, notSupported("shared memory")
}

// TraceSetting is not supported.
func (s *service) TraceSetting(context.Context, *inference.TraceSettingRequest) (*inference.TraceSettingResponse, error) {
	return nil, notSupported("tracing")
}

// LogSettings is not supported.
func (s *service) LogSettings(context.Context, *inference.LogSettingsRequest) (*inference.LogSettingsResponse, error) {
	return nil, notSupported("changing what is logged")
}
