module example.com/own

go 1.26.8

require github.com/onnxrl/onnxrl v0.0.0-test
