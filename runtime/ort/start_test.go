//go:build cgo

package ort_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

// The test binary starts ONNX Runtime in a process of its own when this variable
// is set: a library is loaded once per process.
const envStart = "ONNXRL_TEST_START"

func TestMain(m *testing.M) {
	if os.Getenv(envStart) == "" {
		os.Exit(m.Run())
	}
	_, err := ort.New(context.Background(), ort.Options{})
	fmt.Println(errors.Is(err, ort.ErrUnavailable), errors.Is(err, library.ErrNotFound), errors.Is(err, library.ErrIncompatible), err)
}

// A library that is merely missing makes room for another engine; one that a person named
// wrongly does not.
func TestStartWithoutLibrary(t *testing.T) {
	exe, err := os.Executable()
	must(t, err)
	// No cache, and nothing may be installed: only the system's library can be found.
	missing, says := "true true false", "disabled"
	for _, c := range library.Status("").Candidates {
		if c.Source == library.SourceSystem && c.Err == nil {
			missing, says = "false false false", "<nil>"
		}
	}
	text := filepath.Join(t.TempDir(), "libonnxruntime.so")
	must(t, os.WriteFile(text, []byte("text"), 0o644))
	for _, c := range []struct {
		name, library, want, says string
	}{
		{"missing", "", missing, says},
		{"no file", filepath.Join(t.TempDir(), "absent.so"), "false false false", "absent.so"},
		{"no library", text, "false false true", library.EnvLibrary},
		{"foreign library", exe, "false false true", "OrtGetApiBase"},
	} {
		cmd := exec.Command(exe)
		empty := t.TempDir()
		for _, kv := range os.Environ() {
			if !strings.HasPrefix(kv, library.EnvLibrary+"=") {
				cmd.Env = append(cmd.Env, kv)
			}
		}
		// The cache directory's variable differs by system.
		cmd.Env = append(cmd.Env, envStart+"=1", library.EnvInstall+"=off", "XDG_CACHE_HOME="+empty, "HOME="+empty, "LocalAppData="+empty)
		if c.library != "" {
			cmd.Env = append(cmd.Env, library.EnvLibrary+"="+c.library)
		}
		out, err := cmd.Output()
		must(t, err)
		if !strings.HasPrefix(string(out), c.want) || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %s expected %s … %s", c.name, out, c.want, c.says)
		}
	}
}
