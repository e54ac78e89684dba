package studies

import (
	"bytes"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// killing kills the program at random moments until it has done so often enough.
type killing struct {
	t *testing.T
	// left is how often it is still killed; took is how long the program takes by itself.
	left    int
	took    time.Duration
	moments *rng.Stream
}

// run runs the program with what args returns until it ends by itself, and goes on when it was
// killed.
func (k *killing) run(args func() []string) {
	k.t.Helper()
	for {
		list := args()
		cmd := apptest.Program(k.t, list...)
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			k.t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		var wait <-chan time.Time
		if k.left > 0 {
			// The mean is half of what all takes: most are killed more than once.
			wait = time.After(time.Duration(k.moments.Float64() * float64(k.took)))
		}
		select {
		case <-wait:
			if err := cmd.Process.Kill(); err == nil {
				<-ended
				if cmd.ProcessState.ExitCode() == -1 {
					k.left--
					continue
				}
			}
		case err := <-ended:
			if err != nil {
				k.t.Fatalf("%d kills before the last, %v: %v\n%s", k.left, list, err, said.String())
			}
		}
		return
	}
}
