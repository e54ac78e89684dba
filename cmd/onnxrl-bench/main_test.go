package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/corebench"
)

// Values of envRun make the test binary behave as this program, or as onnxrl.
const (
	envRun   = "ONNXRL_TEST_RUN"
	asBench  = "onnxrl-bench"
	asOnnxrl = "onnxrl"
)

func TestMain(m *testing.M) {
	switch {
	// onnxrl serve tries new versions in a process of its own.
	case os.Getenv(envRun) == asOnnxrl:
		app.Main(kinds.All(), app.Name(asOnnxrl))
	case os.Getenv(envRun) == asBench:
		main()
	}
	os.Exit(m.Run())
}

// program returns a command that is this program, or onnxrl.
func program(t *testing.T, as string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), envRun+"="+as)
	return cmd
}

// execute runs the program to its end.
func execute(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	cmd := program(t, asBench, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// succeed runs the program, expects exit status 0 and returns what it printed.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := execute(t, args...)
	if code != 0 {
		t.Fatalf("%q: exit status %d\n%s%s", args, code, out, errs)
	}
	return out
}

// refuse runs the program and expects exit status 1 and an error that contains what it says.
func refuse(t *testing.T, args []string, says string) {
	t.Helper()
	if _, errs, code := execute(t, args...); code != 1 || !strings.HasPrefix(errs, "onnxrl-bench: ") || !strings.Contains(errs, says) {
		t.Errorf("%q: exit status %d, expected 1 and an error with %q\n%s", args, code, says, errs)
	}
}

// decode reads a JSON document strictly.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

func TestCoreListsItsRows(t *testing.T) {
	if got := strings.Fields(succeed(t, "core", "--list")); !slices.Equal(got, corebench.Names()) {
		t.Errorf("rows %q", got)
	}
}

// Only the benchmarks are there.
func TestOthersAreRefused(t *testing.T) {
	if _, errs, code := execute(t, "doctor"); code != 2 || !strings.Contains(errs, `onnxrl-bench has no command "doctor"; expected `) {
		t.Errorf("exit status %d\n%s", code, errs)
	}
}

// TestCommandsInText finds the commands and flags that README and docs name between backquotes.
func TestCommandsInText(t *testing.T) {
	pages := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/evidence/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatal(pattern, more, err)
		}
		pages = append(pages, more...)
	}
	var text []byte
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, page...)
	}
	named := 0
	for _, m := range regexp.MustCompile("`onnxrl-bench ([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(m[1])
		help := succeed(t, words[0], "--help")
		for _, flag := range words[1:] {
			if strings.HasPrefix(flag, "--") && !strings.Contains(help, flag+" ") {
				t.Errorf("%s: there is no flag %s", m[0], flag)
			}
		}
		named++
	}
	if named < 4 {
		t.Errorf("%d commands found", named)
	}
}
