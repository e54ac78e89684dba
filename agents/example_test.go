package agents_test

import (
	"os"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
)

// TestExampleEnvironment holds the example of a new environment to what it promises: it keeps the
// contract of environments, and the whole of it, from the environment to the trained policy, has at
// most 80 lines that are not blank.
func TestExampleEnvironment(t *testing.T) {
	r := envtest.Run(t, func() (envs.Env, error) { return thermostats{}.New(envs.Train, 0) }, envtest.Options{Steps: 400})
	if r.Episodes < 5 {
		t.Errorf("too little was checked: %+v", r)
	}
	text, err := os.ReadFile("example_environment_test.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines < 40 || lines > 80 {
		t.Errorf("the example has %d lines, expected at most 80", lines)
	}
}
