//go:build !cgo

package app

import (
	"strings"
	"testing"
)

// Without cgo everything runs on the pure-Go engine, and what needs ONNX Runtime says so.
func TestWithoutCgo(t *testing.T) {
	r := onnxrl(t, "grad", "check", torchFixtures)
	if r.code != 0 || strings.Count(r.err, "warning") != 1 || !strings.Contains(r.err, "cgo") || !strings.Contains(r.out, "\n14 models, ") {
		t.Errorf("exit status %d\n%s%s", r.code, r.out, r.err)
	}
	refuse(t, []string{"grad", "check", torchFixtures, "--engine", "ort"}, "cgo")
	refuse(t, []string{"compare", mlp}, "cgo")
}
