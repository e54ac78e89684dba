package flight_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/agents/replay/flight/flighttest"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// stoppedDisk stops at the arrays of a checkpoint until it may go on.
type stoppedDisk struct {
	atomicfile.Disk
	reached, goOn chan struct{}
}

func (d stoppedDisk) Create(path string) (atomicfile.File, error) {
	if strings.HasSuffix(path, ".safetensors") {
		d.reached <- struct{}{}
		<-d.goOn
	}
	return d.Disk.Create(path)
}

// TestCheckpointBesideInserts stops the disk in the middle of a checkpoint. Meanwhile more is
// inserted than the table has room for, acknowledged, sampled, and priorities are updated; a server
// that is started from what is on the disk afterwards has all of it.
func TestCheckpointBesideInserts(t *testing.T) {
	for _, name := range []string{"transitions", "ranked"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := flighttest.Open(t, dir, tables())
			d := stoppedDisk{atomicfile.OS, make(chan struct{}, 100), make(chan struct{})}
			if err := flight.SetDisk(s, name, d); err != nil {
				t.Fatal(err)
			}
			url, _ := flighttest.Serve(t, s, "127.0.0.1:0")
			client, w := dial(t, url, name), newWorld(t, 4)
			store, err := client.Store().Open(w.layout(), replay.Config{Envs: 4, NSteps: 1, Gamma: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			flush := func() {
				t.Helper()
				if err := store.(interface{ Flush() error }).Flush(); err != nil {
					t.Fatal(err)
				}
			}
			w.rounds(t, 900, store)
			flush()
			saved := make(chan error, 1)
			go func() {
				_, err := client.Act(flight.ActionCheckpoint, map[string]string{"table": name})
				saved <- err
			}()
			<-d.reached
			var waited atomic.Bool
			guard := time.AfterFunc(time.Minute, func() {
				waited.Store(true)
				close(d.goOn)
			})
			x := batchOf(64)
			for range 8 {
				w.rounds(t, 300, store)
				flush()
				if err := store.Sample(rng.New(1).Stream(), x); err != nil {
					t.Fatal(err)
				}
				if u, ok := store.(replay.Updater); ok {
					errs := make([]float32, len(x.Index))
					for i := range errs {
						errs[i] = float32(i)
					}
					if err := u.Update(x.Index, errs); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !guard.Stop() || waited.Load() {
				t.Fatal("inserts, samples or updates waited for the checkpoint")
			}
			close(d.goOn)
			if err := <-saved; err != nil {
				t.Fatal(err)
			}
			w.rounds(t, 50, store)
			flush()
			if list, err := filepath.Glob(filepath.Join(dir, name, "checkpoints", "ckpt-*")); err != nil || len(list) != 1 {
				t.Errorf("checkpoints %v, %v", list, err)
			}
			// The files on the disk now, as after a kill.
			killed := filepath.Join(t.TempDir(), "killed")
			if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			again, _ := serve(t, killed, "127.0.0.1:0")
			var texts [2]string
			for i, c := range []*flight.Client{client, dial(t, again, name)} {
				store, err := c.Store().Open(w.layout(), replay.Config{Envs: 4, NSteps: 1, Gamma: 1})
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				about, err := c.Stats(name)
				if err != nil || about.Clock != 4*(900+8*300+50) {
					t.Errorf("%+v, %v", about, err)
				}
				draws := rng.New(2).Stream()
				for range 20 {
					if err := store.Sample(draws, x); err != nil {
						t.Fatal(err)
					}
					texts[i] += text(x)
				}
			}
			if texts[0] != texts[1] {
				t.Error("the restored table gives other samples")
			}
		})
	}
}

// TestKilledTwice kills a server twice, before and after a checkpoint, while one learner records and
// samples: it has the same samples as one whose server was not killed.
func TestKilledTwice(t *testing.T) {
	for _, name := range []string{"transitions", "ranked"} {
		var texts [2][]string
		for kills := range texts {
			dir := t.TempDir()
			s := flighttest.Open(t, dir, tables())
			url, stop := flighttest.Serve(t, s, "127.0.0.1:0")
			client, w := dial(t, url, name), newWorld(t, 4)
			store, err := client.Store().Open(w.layout(), replay.Config{Envs: 4, NSteps: 3, Gamma: 0.9})
			if err != nil {
				t.Fatal(err)
			}
			x, draws := batchOf(32), rng.New(1).Stream()
			for i := range 40 {
				w.rounds(t, 7, store)
				if kills > 0 && (i == 13 || i == 27) {
					if err := store.(interface{ Flush() error }).Flush(); err != nil {
						t.Fatal(err)
					}
					dir = killed(t, dir)
					stop()
					s = flighttest.Open(t, dir, tables())
					_, stop = flighttest.Serve(t, s, strings.TrimPrefix(url, "grpc://"))
				}
				if i == 20 {
					if _, err := client.Act(flight.ActionCheckpoint, map[string]string{"table": name}); err != nil {
						t.Fatal(err)
					}
				}
				if err := store.Sample(draws, x); err != nil {
					t.Fatal(err)
				}
				texts[kills] = append(texts[kills], text(x))
				if u, ok := store.(replay.Updater); ok {
					errs := make([]float32, len(x.Index))
					for i := range errs {
						errs[i] = x.Reward[i]
					}
					if err := u.Update(x.Index, errs); err != nil {
						t.Fatal(err)
					}
				}
			}
			stop()
		}
		for i := range texts[0] {
			if texts[0][i] != texts[1][i] {
				t.Errorf("%s: sample %d of 40 differs where the server was killed before samples 13 and 27", name, i)
				break
			}
		}
	}
}
