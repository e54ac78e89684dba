package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

// CoverageOf is what this package does about one operator, whether the specification marks it as
// differentiable or not.
func CoverageOf(domain, op string) OpCoverage {
	return coverageOf(onnx.NormalizeDomain(domain), op)
}
