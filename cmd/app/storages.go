package app

// Storages that URLs of commands and documents may name, beside directories: see package objects.
import (
	_ "github.com/onnxrl/onnxrl/runtime/objects/s3"
	_ "github.com/onnxrl/onnxrl/runtime/objects/web"
)
