package training

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// DQN and SAC train with a table of a server for their replay, which is one line of their document.
// A run that has a table alone repeats; one whose server is killed three times in the middle ends
// well, and every transition is there once.
func TestTrainReplayOfServer(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	const steps = 1200
	configs := map[string]string{
		"dqn":              "env: {kind: cartpole}\nagent: {kind: dqn, batch_size: 16, buffer_size: 2000, learning_starts: 50, train_freq: 4, gradient_steps: 1, hidden: [8]}\n",
		"dqn, prioritised": "env: {kind: cartpole}\nagent: {kind: dqn, batch_size: 16, buffer_size: 2000, learning_starts: 50, train_freq: 4, gradient_steps: 1, n_steps: 3, hidden: [8], prioritised: {enabled: true}}\n",
		"sac":              "env: {kind: corridor, cells: 6}\nagent: {kind: sac, batch_size: 16, buffer_size: 2000, learning_starts: 50, train_freq: 2, gradient_steps: 1, hidden: [8]}\n",
	}
	for name, text := range sorted.All(configs) {
		selector := flight.Uniform
		if name == "dqn, prioritised" {
			selector = flight.Prioritised
		}
		var table string
		for _, x := range []string{"once", "again", "killed"} {
			table += fmt.Sprintf("  %s: {selector: %s, capacity: 4000}\n", x, selector)
		}
		config := apptest.Write(t, "replay.yaml", fmt.Sprintf("dir: %q\ntables:\n%s", t.TempDir(), table))
		server := apptest.StartReplay(t, config)
		train := func(table string) (args []string, dir string) {
			dir = filepath.Join(t.TempDir(), table)
			config := apptest.Write(t, "run.yaml", "seed: 1\n"+text+fmt.Sprintf(`replay: {kind: flight, url: %q, table: %s}
train: {num_envs: 2, total_env_steps: %d, log_interval_steps: 50, threads: 1, checkpoint: {every_steps: 200}, validation: {every_steps: 600}}
eval: {episodes: 5}
publish: {observations: 64, allow_ties: true}
`, server.URL, table, steps))
			return []string{"train", "-q", config, "--out", dir}, dir
		}
		args, once := train("once")
		apptest.Succeed(t, args...)
		args, again := train("again")
		apptest.Succeed(t, args...)
		a, b := apptest.TrainMetrics(t, once), apptest.TrainMetrics(t, again)
		if len(a) < 20 || !slices.EqualFunc(a, b, maps.Equal) {
			t.Errorf("%s: two runs differ that differ by their table only: %d and %d lines of metrics", name, len(a), len(b))
		}
		args, after := train("killed")
		cmd := apptest.Program(t, args...)
		var says bytes.Buffer
		cmd.Stderr = &says
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		c, kills := server.Client("killed"), 0
		var err error
		running := true
		for look := time.NewTicker(time.Millisecond); running; {
			select {
			case err = <-ended:
				running = false
				continue
			case <-look.C:
			}
			if kills == 3 {
				continue
			}
			s, err := c.Stats("killed")
			if err != nil {
				t.Fatal(err)
			}
			if s.Inserts >= int64(200+300*kills) {
				server.KillAndStart()
				kills++
			}
		}
		if err != nil || kills < 3 {
			t.Fatalf("%s: %v after %d kills of the server\n%s\n%s", name, err, kills, says.String(), server.Log)
		}
		s, err := c.Stats("killed")
		if err != nil || s.Inserts != steps || s.Restored == 0 {
			t.Errorf("%s: the table has %+v (%v), expected %d inserts, restored", name, s, err, steps)
		}
		if k := apptest.TrainMetrics(t, after); !slices.EqualFunc(a, k, maps.Equal) {
			t.Errorf("%s: the run whose server was killed differs: %d and %d lines of metrics", name, len(a), len(k))
		}
		if code := server.Stop(); code != 0 {
			t.Errorf("%s: the server ends with exit status %d\n%s", name, code, server.Log)
		}
		if said := apptest.Succeed(t, "replay", "repair", config); strings.Count(said, fmt.Sprintf("%d kept; nothing is lost", steps)) != 3 {
			t.Errorf("%s: a directory that is whole is repaired: %s", name, said)
		}
	}
}
