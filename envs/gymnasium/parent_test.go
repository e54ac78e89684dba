package gymnasium_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// asParent makes the test binary a program that steps environments until it is killed. Its value is
// how the environments behave.
const asParent = "ONNXRL_TEST_PARENT"

func TestMain(m *testing.M) {
	if err := usePackage(); err != nil {
		panic(err)
	}
	if how := os.Getenv(asParent); how != "" {
		fmt.Println(parent(how))
		os.Exit(1)
	}
	if os.Getenv("ONNXRL_PYTHON") == "" && !pythonOnPath() {
		// The program is built and tested without Python; only these environments cannot be.
		fmt.Println("there is no Python on the path: of this package, only what it says then is tested")
		flag.Parse()
		if err := flag.Set("test.run", "^TestWithoutPython$"); err != nil {
			panic(err)
		}
	}
	// The program python3 may be a script that takes longer to find the interpreter than that
	// takes to start.
	if out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil && os.Getenv("ONNXRL_PYTHON") == "" {
		os.Setenv("ONNXRL_PYTHON", strings.TrimSpace(string(out)))
	}
	os.Exit(m.Run())
}

func pythonOnPath() bool {
	return slices.ContainsFunc([]string{"python3", "python"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// parent steps for ever; it returns an error.
func parent(how string) error {
	f, err := gymnasium.Open(context.Background(), config("Rude-v0", map[string]any{"how": how, "tell": 9}))
	if err != nil {
		return err
	}
	v, err := f.NewVector(envs.Train, 2, vector.Options{Workers: 2})
	if err != nil {
		return err
	}
	if err := v.Reset(rootKey); err != nil {
		return err
	}
	for {
		if err := v.Step(v.Batch().Actions); err != nil {
			return err
		}
	}
}

// TestKilledParent: workers end with the process that started them, also when that is killed and
// they are in the middle of a step. A pipe that only workers hold tells when they are gone.
func TestKilledParent(t *testing.T) {
	for _, how := range []string{"well", "hang"} {
		t.Run(how, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), asParent+"="+how)
			// Descriptor 9, which goes on to the workers: the lower ones are theirs.
			cmd.ExtraFiles = []*os.File{5: nil, 6: w}
			var out strings.Builder
			cmd.Stdout = &out
			if err := errors.Join(cmd.Start(), w.Close(), r.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
				t.Fatal(err)
			}
			// A worker that hangs says so first.
			first := make([]byte, 5)
			_, readErr := io.ReadFull(r, first)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			// How it ended is known.
			_ = cmd.Wait()
			if readErr != nil || string(first) != "here\n" {
				t.Errorf("the workers say %q, %v, their parent %q", first, readErr, out.String())
			}
			if rest, err := io.ReadAll(r); err != nil {
				t.Errorf("workers outlive their parent: %q, %v", rest, err)
			}
		})
	}
}
