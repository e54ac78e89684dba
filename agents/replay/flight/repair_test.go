package flight_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/agents/replay/flight/flighttest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// frames are the places of the groups of a journal's file.
func frames(t *testing.T, text []byte) (list []int) {
	t.Helper()
	for at := 0; ; at++ {
		k := bytes.Index(text[at:], []byte("\x89fr\n"))
		if k < 0 {
			return list
		}
		at += k
		list = append(list, at)
	}
}

// killed is a copy of what a server has on its disk, as if it was killed.
func killed(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// recorded are rounds of 4 environments in a table of a server, whose folder is returned as after a
// kill.
func recorded(t *testing.T, table string, rounds int) string {
	t.Helper()
	dir := t.TempDir()
	url, stop := serve(t, dir, "127.0.0.1:0")
	defer stop()
	w := newWorld(t, 4)
	store, err := dial(t, url, table).Store().Open(w.layout(), replay.Config{Envs: 4, NSteps: 1, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		w.rounds(t, 1, store)
		if err := store.(interface{ Flush() error }).Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return killed(t, dir)
}

// TestRepair flips a bit of the length of a group in the middle of a journal. The server does not
// begin without what was acknowledged behind it; the repair keeps that, and says what is lost.
func TestRepair(t *testing.T) {
	for _, table := range []string{"transitions", "ranked"} {
		dir := recorded(t, table, 20)
		path := filepath.Join(dir, table, "journal-000000000000000.log")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list := frames(t, text)
		if len(list) < 20 {
			t.Fatalf("%d groups", len(list))
		}
		text[list[10]+6] ^= 1 // By 64 KiB.
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = flight.Open(dir, tables(), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "onnxrl replay repair") {
			t.Fatalf("a server with a damaged journal: %v", err)
		}
		done, err := flight.Repair(dir, tables(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(done, func(r flight.Repaired) bool { return r.Table == table })
		if r := done[i]; len(r.Lost) != 1 || r.Lost[0].Path != path || r.Lost[0].At != int64(list[10]) || r.Lost[0].To != r.Lost[0].From+1 || r.LeftOut != 0 || r.Size != 4*19 {
			t.Errorf("%s: %+v; expected one record lost, and 76 transitions", table, r)
		}
		if kept, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(kept, text) {
			t.Errorf("%s: the damaged file was not kept: %v", table, err)
		}
		s := flighttest.Open(t, dir, tables())
		if about := s.Tables(); about[slices.IndexFunc(about, func(x flight.TableStats) bool { return x.Table == table })].Size != 4*19 {
			t.Errorf("%s after the repair: %+v", table, about)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedCheckpoint damages the newest of two checkpoints: the table is restored from the one
// before it and the journal since, which lacks nothing, and the server says so. With the only
// checkpoint it is restored from the beginning.
func TestDamagedCheckpoint(t *testing.T) {
	for saves := 1; saves <= 2; saves++ {
		dir := t.TempDir()
		url, _ := serve(t, dir, "127.0.0.1:0")
		client, w := dial(t, url, "ranked"), newWorld(t, 2)
		store, err := client.Store().Open(w.layout(), replay.Config{Envs: 2, NSteps: 1, Gamma: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range saves {
			w.rounds(t, 40, store)
			if err := store.(interface{ Flush() error }).Flush(); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Act(flight.ActionCheckpoint, map[string]string{"table": "ranked"}); err != nil {
				t.Fatal(err)
			}
		}
		w.rounds(t, 10, store)
		x, draws := batchOf(64), rng.New(2).Stream()
		if err := store.Sample(draws, x); err != nil {
			t.Fatal(err)
		}
		want := text(x)
		copied := killed(t, dir)
		list, err := filepath.Glob(filepath.Join(copied, "ranked", "checkpoints", "ckpt-*", "*.safetensors"))
		if err != nil || len(list) != saves {
			t.Fatal(list, err)
		}
		b, err := os.ReadFile(list[saves-1])
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-9] ^= 4
		if err := os.WriteFile(list[saves-1], b, 0o600); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		s, err := flight.Open(copied, tables(), slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if from := []string{"the beginning of the journal", "the checkpoint before it"}[saves-1]; !strings.Contains(said.String(), from) || !strings.Contains(said.String(), filepath.Base(filepath.Dir(list[saves-1]))) {
			t.Errorf("%d checkpoints: it says %q", saves, said.String())
		}
		again, _ := flighttest.Serve(t, s, "127.0.0.1:0")
		other, err := dial(t, again, "ranked").Store().Open(w.layout(), replay.Config{Envs: 2, NSteps: 1, Gamma: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Sample(rng.New(2).Stream(), x); err != nil {
			t.Fatal(err)
		}
		if text(x) != want {
			t.Errorf("%d checkpoints: the restored table gives other samples", saves)
		}
	}
}
