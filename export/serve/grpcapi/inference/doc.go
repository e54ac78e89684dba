// Package inference holds the messages and the service of the Open Inference Protocol's gRPC form,
// generated from inference.proto. What the server answers is in package grpcapi.
//
// # How to add
//
// A message or a field: add it to inference.proto with the protocol's own number, and generate
// again.
package inference

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative --go_opt=Minference.proto=github.com/onnxrl/onnxrl/export/serve/grpcapi/inference --go-grpc_opt=Minference.proto=github.com/onnxrl/onnxrl/export/serve/grpcapi/inference inference.proto
