package replay

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// limitedVariable says that this process is the one that TestFullDiskOfTheKernel has started, whose
// limit on the size of files may change.
const limitedVariable = "REPLAY_TEST_LIMITED"

// TestFullDiskOfTheKernel lets the kernel refuse the rest of a file, as it does when a disk is
// full, in the middle of a spill and of a checkpoint: what was written before stays readable,
// nothing in memory is lost, and with room again everything goes on. The limit holds for a whole
// process, so this is one of its own.
func TestFullDiskOfTheKernel(t *testing.T) {
	const done = "all stages are passed"
	if os.Getenv(limitedVariable) != "" {
		fullDiskOfTheKernel(t)
		t.Log(done)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), limitedVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), done) || strings.Contains(string(out), "FAIL") {
		t.Errorf("%v\n%s", err, out)
	}
}

// limitFiles sets the size that files may have.
func limitFiles(t *testing.T, bytes uint64) {
	t.Helper()
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	now.Cur = min(bytes, now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
}

func fullDiskOfTheKernel(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	dir, saves := filepath.Join(t.TempDir(), "replay"), t.TempDir()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config := SharedConfig{Capacity: 300, ChunkRows: 16, Dir: dir, Format: RowFiles, FileChunks: 4}
	s, worlds, l := sharedWorlds(t, config, 1, 2)
	w := worlds[0]
	rounds := 0
	round := func(s *Shared, files int) {
		t.Helper()
		for s.Stats().Spilled.Files < files {
			w.round(t)
			rounds++
		}
	}
	round(s, 3)
	store, err := checkpoint.OpenStore(saves, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, store)
	first, err := store.Save(checkpoint.Meta{Kind: "shared", Step: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	saved := s.Stats()
	files := list(t, dir)
	info, err := os.Stat(files[0])
	if err != nil {
		t.Fatal(err)
	}

	// Half of a file is written, and then there is no room.
	limitFiles(t, uint64(info.Size()/2))
	for range 1000 {
		if err = w.rec.Begin(w.v.Batch(), &w.d); err != nil {
			break
		}
		// Work that has begun goes on as usual; nothing steps, so the diary need not know.
		if err := w.rec.End(w.v.Batch()); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "replay: spill") || !strings.Contains(err.Error(), filepath.Join(dir, "replay-")) || !strings.Contains(err.Error(), "stay in memory") {
		t.Fatalf("a spill without room: %v", err)
	}
	held := s.Stats()
	if held.Spilled != saved.Spilled || held.Transitions+held.Spilled.Transitions != int(held.Recorded) {
		t.Errorf("%+v, before %+v: something is lost", held, saved)
	}
	if now := list(t, dir); strings.Join(now, " ") != strings.Join(files, " ") {
		t.Errorf("the folder has %v, expected %v", now, files)
	}
	reload(t, l, worlds, files, saved.Spilled.Transitions)
	if path, err := store.Save(checkpoint.Meta{Kind: "shared", Step: 2}, s); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "save checkpoint of step 2") || !strings.Contains(err.Error(), saves) {
		t.Errorf("a checkpoint without room: %q, %v", path, err)
	}
	if now := list(t, saves); len(now) != 1 || now[0] != first {
		t.Errorf("the folder of checkpoints has %v, expected %s", now, first)
	}

	// The earlier checkpoint is what it was.
	latest, err := checkpoint.Latest(saves)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, latest)
	r, err := NewShared(l, config)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, r)
	if err := latest.Load(r); err != nil {
		t.Fatal(err)
	}
	if now := r.Stats(); now.Transitions != saved.Transitions || now.Recorded != saved.Recorded {
		t.Errorf("the checkpoint holds %+v, expected %+v", now, saved)
	}
	b, draws := sharedBatch(r, 20), rng.New(3).Stream()
	p := sampler(t, r, SamplerConfig{Gamma: 0.9})
	for range 20 {
		if err := p.Sample(draws, b); err != nil {
			t.Fatal(err)
		}
		checkShared(t, r, worlds, b, 1, 0.9)
	}

	// With room again the store that met the end of it goes on, and so does the one that was
	// restored.
	limitFiles(t, unix.RLIM_INFINITY)
	if err := w.rec.Begin(w.v.Batch(), &w.d); err != nil {
		t.Fatal(err)
	}
	if err := w.rec.End(w.v.Batch()); err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Spilled.Files != saved.Spilled.Files+1 || st.Transitions+st.Spilled.Transitions != int(st.Recorded) {
		t.Errorf("with room again %+v", st)
	}
	if _, err := store.Save(checkpoint.Meta{Kind: "shared", Step: 2}, s); err != nil {
		t.Error(err)
	}
	before := rounds
	w.rec = writerOf(t, r, 0, w)
	round(r, saved.Spilled.Files+2)
	if st := r.Stats(); rounds == before || st.Recorded != saved.Recorded+int64(2*(rounds-before)) {
		t.Errorf("the restored store has %+v after %d rounds", st, rounds-before)
	}
}

// list returns the paths of a folder's entries, hidden ones too.
func list(t *testing.T, dir string) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		// A checkpoint store's lock is none of its content.
		if e.Name() != ".lock" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// reload reads files into another store and compares all that they hold with what was written down.
func reload(t *testing.T, l Layout, worlds []*world, files []string, transitions int) {
	t.Helper()
	big, err := NewShared(l, SharedConfig{Capacity: 4000, ChunkRows: 16, Format: RowFiles})
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
	if sum != transitions {
		t.Errorf("%d transitions were read, expected %d", sum, transitions)
	}
	p, b, draws := sampler(t, big, SamplerConfig{Gamma: 0.9}), sharedBatch(big, 50), rng.New(2).Stream()
	for range 20 {
		if err := p.Sample(draws, b); err != nil {
			t.Fatal(err)
		}
		checkShared(t, big, worlds, b, 1, 0.9)
	}
}
