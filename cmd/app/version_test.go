package app

import (
	"runtime"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
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
	if flag := apptest.Succeed(t, "--version"); flag != text {
		t.Errorf("--version prints %q", flag)
	}
	apptest.Refuse(t, []string{"version", "now"}, "now")
	// A program of somebody's own has the version that it gives, in both.
	for _, args := range [][]string{{"version"}, {"--version"}, {"version", "--json"}, {"--version", "--json"}} {
		var out, errs strings.Builder
		if code := Execute(t.Context(), kinds.All(), args, strings.NewReader(""), &out, &errs, Name("mine"), Version("v1.2.3-mine")); code != 0 || !strings.Contains(out.String(), "v1.2.3-mine") {
			t.Errorf("%q: status %d, %q, %s", args, code, out.String(), errs.String())
		}
	}
}
