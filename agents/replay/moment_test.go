package replay

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// askingDisk asks for something before every write.
type askingDisk struct {
	atomicfile.Disk
	ask func()
}

type askingFile struct {
	atomicfile.File
	ask func()
}

func (d askingDisk) Create(path string) (atomicfile.File, error) {
	f, err := d.Disk.Create(path)
	return askingFile{f, d.ask}, err
}

func (f askingFile) Write(b []byte) (int, error) {
	f.ask()
	return f.File.Write(b)
}

// loader makes a state out of one that is only saved.
type loader struct{}

func (loader) LoadState(*checkpoint.Reader) error { return errors.ErrUnsupported }

// TestMoment writes a moment while others record over everything that it has, and finds in the
// checkpoint what the store had at the moment itself.
func TestMoment(t *testing.T) {
	for name, c := range sorted.All(longtest.Few(t, map[string]struct {
		config SharedConfig
		ranked bool
	}{
		"uniform": {SharedConfig{Capacity: 4000, ChunkRows: 16}, false}, "ranked": {SharedConfig{Capacity: 4000, ChunkRows: 64}, true},
		"spilled": {SharedConfig{Capacity: 4000, ChunkRows: 32, Dir: t.TempDir(), Format: RowFiles, FileChunks: 8}, false},
	}, 1)) {
		t.Run(name, func(t *testing.T) {
			s, worlds, l := sharedWorlds(t, c.config, 3, 2)
			ranked := func(s *Shared) *Shared {
				if c.ranked {
					if err := s.Prioritise(Priorities{Alpha: 0.6, Eps: 1e-6}); err != nil {
						t.Fatal(err)
					}
				}
				return s
			}
			ranked(s)
			rounds := func(n int) {
				for range n {
					for _, w := range worlds {
						w.round(t)
					}
				}
			}
			rounds(1000)
			if c.ranked {
				var keys []int64
				var errs []float32
				for row := range int64(500) {
					keys, errs = append(keys, Key(row, s.timeOf(int(row)))), append(errs, float32(row))
				}
				if known, err := s.Update(keys, errs); err != nil || known < 100 {
					t.Fatalf("%d priorities, %v", known, err)
				}
			}
			want := checkpointed(t, "shared", s)
			before := s.clock.Load()
			n, err := s.Moment()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Moment(); !errors.Is(err, errFrozen) {
				t.Errorf("a second one: %v", err)
			}
			ask, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for range ask {
					rounds(200)
				}
			}()
			store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{Disk: askingDisk{atomicfile.OS, func() { ask <- struct{}{} }}})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, store)
			path, err := store.Save(checkpoint.Meta{Kind: "shared"}, struct {
				*Moment
				loader
			}{Moment: n})
			if err != nil {
				t.Fatal(err)
			}
			n.Close()
			close(ask)
			<-done
			if more := s.clock.Load() - before; more < 8000 {
				t.Errorf("%d transitions were recorded meanwhile, expected more than twice what there is room for", more)
			}
			arrays := func(path string) []byte {
				t.Helper()
				// A store that has loaded it saves it in an order of its own.
				r, err := NewShared(l, SharedConfig{Capacity: c.config.Capacity, ChunkRows: c.config.ChunkRows})
				if err != nil {
					t.Fatal(err)
				}
				closing(t, r)
				saved, err := checkpoint.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				closing(t, saved)
				if err := saved.Load(ranked(r)); err != nil {
					t.Fatal(err)
				}
				b, err := os.ReadFile(filepath.Join(checkpointed(t, "shared", r), "arrays.safetensors"))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			if got, want := arrays(path), arrays(want); len(want) < 400_000 || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of arrays, and %d when nobody wrote; they differ", len(got), len(want))
			}
			if _, err := s.Moment(); err != nil {
				t.Errorf("another one afterwards: %v", err)
			}
		})
	}
}
