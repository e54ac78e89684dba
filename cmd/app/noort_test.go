//go:build !cgo

package app

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// Without cgo everything runs on the pure-Go engine, and what needs ONNX Runtime says so.
func TestWithoutCgo(t *testing.T) {
	r := apptest.Run(t, "grad", "check", torchFixtures)
	if r.Code != 0 || strings.Count(r.Err, "warning") != 1 || !strings.Contains(r.Err, "cgo") || !strings.Contains(r.Out, "\n14 models, ") {
		t.Errorf("exit status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	apptest.Refuse(t, []string{"grad", "check", torchFixtures, "--engine", "ort"}, "cgo")
	apptest.Refuse(t, []string{"compare", mlp}, "cgo")
}
