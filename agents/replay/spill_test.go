package replay

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSpill records more than fits, and reads all of it back from the files.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 300, ChunkRows: 16, Dir: dir, Format: RowFiles, FileChunks: 4}, 2, 2)
	for range 300 {
		for _, w := range worlds {
			w.round(t)
		}
	}
	st := s.Stats()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	if st.Spilled.Files != len(files) || len(files) < 10 || st.Transitions+st.Spilled.Transitions != 1200 {
		t.Fatalf("%+v with %d files, 1200 transitions recorded", st, len(files))
	}
	for _, w := range worlds {
		if err := w.rec.(*Writer).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if files, err = s.Files(); err != nil {
		t.Fatal(err)
	}
	// Everything lies on disk now: another store has it all, with the same columns.
	big, err := NewShared(s.l, SharedConfig{Capacity: 3000, ChunkRows: 16, Format: RowFiles})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, big)
	sum := 0
	for _, f := range files {
		n, err := big.Reload(f)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != 1200 || big.Len() != 1200 || big.clock.Load() != 1200 {
		t.Errorf("%d transitions were read, %d are there, the clock is at %d", sum, big.Len(), big.clock.Load())
	}
	p, b, draws, seen := sampler(t, big, SamplerConfig{Gamma: 0.9}), sharedBatch(big, 50), rng.New(2).Stream(), map[string]bool{}
	for range 300 {
		if err := p.Sample(draws, b); err != nil {
			t.Fatal(err)
		}
		checkShared(t, big, worlds, b, 1, 0.9)
		for i := range b.Reward {
			seen[sampled(b.Obs, i)] = true
		}
	}
	if len(seen) < 1190 {
		t.Errorf("%d different transitions were drawn", len(seen))
	}
	// The full store takes a file back too, in the place of the oldest chunks, which need not be
	// written again.
	before := s.Stats().Spilled
	n, err := s.Reload(files[0])
	if err != nil || n == 0 || s.Stats().Spilled != before {
		t.Errorf("%d transitions, %v; spilled %+v, before %+v", n, err, s.Stats().Spilled, before)
	}
	q := sampler(t, s, SamplerConfig{Gamma: 0.9})
	b = sharedBatch(s, 50)
	for range 20 {
		if err := q.Sample(draws, b); err != nil {
			t.Fatal(err)
		}
		checkShared(t, s, worlds, b, 1, 0.9)
	}
}

// TestFullDisk lets the disk run full in the middle of a file: the error is clear, every transition
// stays where it is, and when there is room again the run goes on.
func TestFullDisk(t *testing.T) {
	dir, disk := t.TempDir(), faultdisk.New(atomicfile.OS)
	s, worlds, _ := sharedWorlds(t, SharedConfig{Capacity: 150, ChunkRows: 16, Dir: dir, Format: RowFiles, FileChunks: 3, Disk: disk}, 1, 2)
	w := worlds[0]
	v := w.v.Batch()
	disk.SetRoom(1500)
	rounds := 0
	var err error
	for rounds < 500 {
		if err = w.rec.Begin(v, &w.d); err != nil {
			break
		}
		// Work that has begun goes on as usual.
		if err := w.rec.End(v); err != nil {
			t.Fatal(err)
		}
		rounds++
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "replay: spill") || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "stay in memory") {
		t.Fatalf("after %d rounds: %v", rounds, err)
	}
	held := s.Len()
	if held != 2*rounds || s.Stats().Spilled != (Spilled{}) {
		t.Errorf("%d transitions of %d rounds are there, %+v", held, rounds, s.Stats())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	p, b := sampler(t, s, SamplerConfig{Gamma: 1}), sharedBatch(s, 20)
	if err := p.Sample(rng.New(1).Stream(), b); err != nil {
		t.Error(err)
	}
	disk.SetRoom(-1)
	for range 100 {
		w.round(t)
	}
	if st := s.Stats(); st.Transitions+st.Spilled.Transitions != 2*(rounds+100) || st.Spilled.Files == 0 {
		t.Errorf("%+v, %d transitions were recorded", st, 2*(rounds+100))
	}
	// Every operation of the disk may fail.
	failures := 0
	for k := 1; k < 40; k++ {
		disk.FailAt(k, syscall.EIO)
		before := s.Stats()
		err := s.makeRoomNow()
		if !disk.Failed() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		failures++
		if after := s.Stats(); !errors.Is(err, syscall.EIO) || after.Transitions != before.Transitions || after.Spilled != before.Spilled {
			t.Errorf("failure %d: %v; %+v, before %+v", k, err, after, before)
		}
	}
	if failures < 4 {
		t.Errorf("%d failures", failures)
	}
}

// makeRoomNow frees chunks although there may be free ones.
func (s *Shared) makeRoomNow() error {
	free := s.free
	s.free = nil
	err := s.makeRoom(1)
	s.free = append(s.free, free...)
	return err
}

// TestReloadRefuses reads files of other layouts and damaged ones.
func TestReloadRefuses(t *testing.T) {
	dir := t.TempDir()
	s, worlds, l := sharedWorlds(t, SharedConfig{Capacity: 200, ChunkRows: 16, Dir: dir, Format: RowFiles, FileChunks: 2}, 1, 2)
	for range 150 {
		worlds[0].round(t)
	}
	files, err := s.Files()
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reload(filepath.Join(dir, "none.arrow")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	n := 0
	for what, change := range sorted.All(map[string]func(l *Layout, c *SharedConfig){
		"action": func(l *Layout, _ *SharedConfig) { l.Action.DType = tensor.Int32 }, "log-probability": func(l *Layout, _ *SharedConfig) { l.LogProb = false },
		"logits": func(l *Layout, _ *SharedConfig) { l.Logits = 3 }, "mask": func(l *Layout, _ *SharedConfig) { l.Mask = 5 },
		"chunks": func(_ *Layout, c *SharedConfig) { c.ChunkRows = 8 },
	}) {
		m, c := l, SharedConfig{Capacity: 200, ChunkRows: 16, Format: RowFiles}
		change(&m, &c)
		other, err := NewShared(m, c)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, other)
		if k, err := other.Reload(files[0]); err == nil || k != 0 || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%s: %d transitions, %v", what, k, err)
		}
		n++
	}
	// Whatever is changed, the store stays usable: a file is refused, or what it has is sound.
	draws, path := rng.New(8).Stream(), filepath.Join(dir, "damaged.arrow")
	refused := 0
	for k := range 300 {
		bad := append([]byte(nil), good...)
		if k%3 == 0 {
			bad = bad[:draws.IntN(len(bad))]
		} else {
			for range 1 + draws.IntN(4) {
				bad[draws.IntN(len(bad))] ^= byte(1 + draws.IntN(255))
			}
		}
		if err := os.WriteFile(path, bad, 0o666); err != nil {
			t.Fatal(err)
		}
		store, err := NewShared(l, SharedConfig{Capacity: 200, ChunkRows: 16, Format: RowFiles})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Reload(path); err != nil {
			refused++
		}
		b := sharedBatch(store, 10)
		for _, c := range []SamplerConfig{{Gamma: 1}, {Gamma: 1, HalfLife: 10, Beta: 1}} {
			if err := sampler(t, store, c).Sample(draws, b); err != nil && !errors.Is(err, ErrEmpty) {
				t.Errorf("damage %d: %v", k, err)
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 305 || refused < 100 {
		t.Errorf("%d cases, %d files refused", n, refused)
	}
}

// TestSharedResume saves a store in the middle, restores it, and compares all that follows: with
// writers made before restoring and after it.
func TestSharedResume(t *testing.T) {
	cases := 0
	for _, late := range []bool{false, true} {
		config := SharedConfig{Capacity: 250, ChunkRows: 16}
		s, worlds, l := sharedWorlds(t, config, 2, 2)
		mixed := SamplerConfig{Gamma: 0.9, Mix: map[int32]float64{0: 1, 1: 2}, HalfLife: 90, Beta: 0.7}
		one := []*Sampler{sampler(t, s, SamplerConfig{Gamma: 0.9}), sampler(t, s, mixed)}
		b, d := sharedBatch(s, 12), sharedBatch(s, 12)
		draws, again := rng.New(4).Stream(), rng.New(4).Stream()
		for range 170 {
			for _, w := range worlds {
				w.round(t)
			}
			for _, p := range one {
				if err := p.Sample(draws, b); err != nil {
					t.Fatal(err)
				}
			}
		}
		store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, store)
		path, err := store.Save(checkpoint.Meta{Kind: "shared"}, s)
		if err != nil {
			t.Fatal(err)
		}
		state, err := draws.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := again.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		load := func(into *Shared) error {
			saved, err := checkpoint.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, saved)
			return saved.Load(into)
		}
		open := func(c SharedConfig) *Shared {
			s, err := NewShared(l, c)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, s)
			return s
		}
		r := open(config)
		if late {
			if err := load(r); err != nil {
				t.Fatal(err)
			}
		}
		for i, w := range slices.Backward(worlds) {
			w.rec = both{w.rec, writerOf(t, r, int32(i), w)}
		}
		if !late {
			if err := load(r); err != nil {
				t.Fatal(err)
			}
		}
		two := []*Sampler{sampler(t, r, SamplerConfig{Gamma: 0.9}), sampler(t, r, mixed)}
		for range 100 {
			for _, w := range worlds {
				w.round(t)
			}
			for i, p := range one {
				if err := errors.Join(p.Sample(draws, b), two[i].Sample(again, d)); err != nil {
					t.Fatal(err)
				}
				for k := range b.Reward {
					if b.Index[k] != d.Index[k] || b.Reward[k] != d.Reward[k] || b.Weight[k] != d.Weight[k] || b.Time[k] != d.Time[k] || b.Policy[k] != d.Policy[k] {
						t.Fatalf("sampler %d of the restored store draws something else", i)
					}
				}
				checkShared(t, r, worlds, d, 1, 0.9)
			}
		}
		// A store that does not fit, or whose writers do not, says so.
		other := config
		other.Capacity = 500
		if err := load(open(other)); err == nil || !strings.Contains(err.Error(), "chunks") {
			t.Errorf("another capacity: %v", err)
		}
		odd := open(config)
		if _, err := odd.Writer("policy 0", 7, 2, nil); err != nil {
			t.Fatal(err)
		}
		if err := load(odd); err == nil || !strings.Contains(err.Error(), `"policy 0" is of policy 0 in 2 environments, expected 7 in 2`) {
			t.Errorf("another policy: %v", err)
		}
		if err := worlds[0].rec.(both)[0].Begin(worlds[0].v.Batch(), &worlds[0].d); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Save(checkpoint.Meta{Kind: "shared", Step: 2}, s); err == nil || !strings.Contains(err.Error(), "between rounds") {
			t.Errorf("saved in the middle of a round: %v", err)
		}
		cases++
	}
	if cases != 2 {
		t.Errorf("%d cases", cases)
	}
}
