package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents/worker/capacity"
)

// TestScale simulates a few workers; costs of a file that makes the server slow are used.
func TestScale(t *testing.T) {
	args := []string{"scale", "-q", "--json", "--interval", "30s", "--workers", "1,20"}
	r := decode[capacity.Report](t, succeed(t, args...))
	if len(r.Rows) != 2 || len(r.Limits) != 1 || r.Missed != 0 || r.Rows[1].Result.Done != 60 {
		t.Errorf("%+v", r)
	}
	slow := filepath.Join(t.TempDir(), "costs.json")
	const text = `{"machine": "a slow one", "command": "by hand", "start": {"service_s": 5, "answer_s": 5}, "schedule": {"service_s": 5, "answer_s": 5}, "finish": {"service_s": 5, "answer_s": 5},
"complete": {"service_s": 5, "answer_s": 5}, "beat": {"service_s": 1, "answer_s": 1}, "describe": {"service_s": 1, "answer_s": 1},
"stat": {"service_s": 0, "answer_s": 0.01}, "write": {"service_s": 0, "answer_s": 0.01}, "read": {"service_s": 0, "answer_s": 0.01}, "program_s": 0, "worker_s": 0, "rest_s": 0, "disk_s_per_file": 0}`
	if err := os.WriteFile(slow, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--costs", slow)
	if r := decode[capacity.Report](t, succeed(t, args...)); r.Missed != 1 || r.Limits[0].Station != "server" || r.Limits[0].Workers > 20 {
		t.Errorf("%+v", r)
	}
	if out, errs, code := execute(t, append(args, "--check")...); code != 1 || errs != "" && out == "" {
		t.Errorf("exit status %d, expected 1: %s%s", code, out, errs)
	}
	refuse(t, []string{"scale", "--costs", filepath.Join(t.TempDir(), "none.json")}, "none.json")
	refuse(t, []string{"scale", "--workers", "0"}, "workers is 0, expected at least 1")
}
