//go:build cgo

package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// A library that was named and is not usable is told as what is wrong, nothing takes its place, and
// the exit status is 1.
func TestDoctorNamedLibrary(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	absent := filepath.Join(t.TempDir(), "absent.so")
	for _, c := range []struct{ path, says string }{
		{text, "not a usable ONNX Runtime library"},
		{absent, "no such file"},
		{filepath.Dir(absent), "a folder without"},
	} {
		for _, install := range [][]string{nil, {"--install"}} {
			r := apptest.Run(t, append([]string{"doctor", "--json", "--ort-library", c.path}, install...)...)
			var doc doctorReport
			if err := json.Unmarshal([]byte(r.Out), &doc); err != nil {
				t.Fatalf("%v\n%s%s", err, r.Out, r.Err)
			}
			if r.Code != 1 || doc.Engine != "none" || doc.Library != "" || len(doc.Advice) == 0 ||
				!strings.Contains(doc.Advice[0], c.path) || !strings.Contains(doc.Advice[0], c.says) || !strings.Contains(doc.Advice[0], "--ort-library") {
				t.Errorf("%s %v: exit status %d, engine %q, advice %q", c.path, install, r.Code, doc.Engine, doc.Advice)
			}
			if slices.ContainsFunc(doc.Advice, func(s string) bool { return strings.Contains(s, "on first use") }) {
				t.Errorf("%s: advice %q", c.path, doc.Advice)
			}
		}
		if r := apptest.Run(t, "doctor", "--ort-library", c.path); r.Code != 1 || !strings.Contains(r.Out, c.path+", named by --ort-library, cannot be used") {
			t.Errorf("exit status %d\n%s", r.Code, r.Out)
		}
		// It is what commands do as well.
		apptest.Refuse(t, []string{"grad", "check", torchFixtures, "--ort-library", c.path}, c.path, c.says)
	}
}

// Without any package client doctor says what to install, and --install does too.
func TestDoctorWithoutClients(t *testing.T) {
	for _, args := range [][]string{{"doctor"}, {"doctor", "--install"}} {
		cmd := apptest.Program(t, args...)
		home := t.TempDir()
		cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CACHE_HOME=", "LocalAppData="+home, "PATH="+home, "LD_LIBRARY_PATH=", "ONNXRL_ORT_LIBRARY=", "ONNXRL_ORT_INSTALL=")
		out, err := cmd.Output()
		// A library of the system is found all the same.
		if err == nil && strings.Contains(string(out), "(system)") {
			continue
		}
		for _, s := range []string{"engine             portable", "install pip", "pip download", "onnxruntime==", "--ort-library FILE"} {
			if err == nil || !strings.Contains(string(out), s) {
				t.Errorf("%v does not say %q (%v)\n%s", args, s, err, out)
			}
		}
	}
}
