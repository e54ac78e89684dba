//go:build cgo

package app

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

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
