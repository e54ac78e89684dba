package app

import (
	"runtime"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

// The version is that which doctor shows and lineage has.
func TestVersion(t *testing.T) {
	r := apptest.Decoded[versionReport](t, apptest.Succeed(t, "version", "--json"))
	d := apptest.Decoded[doctorReport](t, apptest.Run(t, "doctor", "--json").Out)
	if r.Info != buildinfo.This() || len(r.Digest) != 64 || r.Version == "" || r.Version != d.Version || r.Platform != d.Platform || r.Cgo != d.Cgo || r.ORTVersion != library.Version {
		t.Errorf("%+v, and of doctor %+v", r, d)
	}
	text := apptest.Succeed(t, "version")
	apptest.Says(t, text, "onnxrl "+r.Version, runtime.Version(), r.Platform, "ONNX Runtime "+library.Version)
	if strings.Count(text, "\n") != 1 {
		t.Errorf("more than a line: %q", text)
	}
	apptest.Refuse(t, []string{"version", "now"}, "now")
}
