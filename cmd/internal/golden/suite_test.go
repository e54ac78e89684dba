package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// tableFile has the digest of each result of each run.
const tableFile = "testdata/digests.txt"

// golden is a run of the program whose results are digested.
type golden struct {
	name string
	// documents of testdata/tiny are copied into the run's folder, with $DIR, $SEED, $URL and
	// $NAME, the folder of another run, replaced.
	documents []string
	// server is the command line of a server that answers while the run goes on; $URL is where.
	server string
	// lines are command lines, in which the same is replaced; each has --engine portable and -q.
	lines []string
	// results are digested.
	results []result
	// slow are runs of 2 s and more, which -short leaves out.
	slow bool
	// fixed says that another seed leaves the results alone, for the reason given.
	fixed string
}

// result is something that a run comes to, as text.
type result struct {
	name string
	text func(t *testing.T, w *work) string
}

// suite performs runs, each once, in folders of their own.
type suite struct {
	seed  string
	root  string
	works map[string]*work
}

// work is a run that is performed, or was.
type work struct {
	golden
	s       *suite
	dir     string
	once    sync.Once
	done    bool
	printed []string
}

func newSuite(t *testing.T, seed string) *suite {
	t.Helper()
	s := &suite{seed, t.TempDir(), map[string]*work{}}
	for _, g := range runs {
		s.works[g.name] = &work{golden: g, s: s, dir: filepath.Join(s.root, g.name)}
	}
	return s
}

// word is what is replaced in documents and command lines.
var word = regexp.MustCompile(`\$[A-Za-z_]+[a-z0-9_]*`)

// expand replaces words; runs that are named are performed before.
func (w *work) expand(t *testing.T, text, url string) string {
	t.Helper()
	return word.ReplaceAllStringFunc(text, func(name string) string {
		switch name = name[1:]; name {
		case "DIR":
			return w.dir
		case "SEED":
			return w.s.seed
		case "URL":
			return url
		}
		other, ok := w.s.works[name]
		if !ok {
			t.Fatalf("%s: there is no run %q", w.name, name)
		}
		other.perform(t)
		return other.dir
	})
}

// perform performs the run, unless another test has.
func (w *work) perform(t *testing.T) {
	t.Helper()
	w.once.Do(func() {
		if err := os.MkdirAll(w.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		url := ""
		if w.server != "" {
			for _, name := range w.documents {
				w.document(t, name, "$URL")
			}
			line, stop := serving(t, append(strings.Fields(w.expand(t, w.server, "")), "--json")...)
			defer stop()
			url = "grpc://" + apptest.Decoded[struct{ Listen string }](t, line).Listen
		}
		for _, name := range w.documents {
			w.document(t, name, url)
		}
		for _, line := range w.lines {
			w.printed = append(w.printed, perform(t, append(strings.Fields(w.expand(t, line, url)), "--engine", "portable", "-q")...))
		}
		w.done = true
	})
	if !w.done {
		t.Fatalf("the run %s has failed", w.name)
	}
}

func (w *work) document(t *testing.T, name, url string) {
	t.Helper()
	text := w.expand(t, apptest.ReadText(t, "testdata", "tiny", name), url)
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// digests performs a run and returns the digests of its results by name; what was digested is kept
// where -golden-out says.
func (w *work) digests(t *testing.T) map[string]string {
	t.Helper()
	w.perform(t)
	list := map[string]string{}
	for _, r := range w.results {
		text := r.text(t, w)
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s: the result %s is empty", w.name, r.name)
		}
		if _, ok := list[r.name]; ok {
			t.Fatalf("%s: there are two results %s", w.name, r.name)
		}
		sum := sha256.Sum256([]byte(text))
		list[r.name] = hex.EncodeToString(sum[:])
		if *goldenOut != "" {
			write(t, filepath.Join(*goldenOut, "seed-"+w.s.seed, w.name, strings.ReplaceAll(r.name, "/", "-")+".txt"), []byte(text))
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s: it has no results", w.name)
	}
	return list
}

// TestGolden performs all runs: each result has the digest of the table.
func TestGolden(t *testing.T) {
	t.Parallel()
	goldenOnly(t)
	table := readTable(t)
	s := newSuite(t, "1")
	var mu sync.Mutex
	compared, performed := 0, 0
	for _, g := range runs {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			if g.slow {
				longtest.Slow(t)
			}
			got := s.works[g.name].digests(t)
			mu.Lock()
			defer mu.Unlock()
			if *goldenFrom != "" {
				table[g.name] = got
				writeTable(t, table)
			}
			want := table[g.name]
			for name, sum := range sorted.All(got) {
				switch {
				case want[name] == "":
					t.Errorf("the result %s is in no line of %s: record it with -golden-from", name, tableFile)
				case sum != want[name]:
					t.Errorf("%s is another: its digest is %.16s, expected %.16s; package golden's comment says how to see the difference", name, sum, want[name])
				}
			}
			for name := range sorted.All(want) {
				if got[name] == "" {
					t.Errorf("there is no result %s any more", name)
				}
			}
			compared += len(got)
			performed++
		})
	}
	t.Cleanup(func() {
		if performed == len(runs) && compared != tableLines {
			t.Errorf("%d digests compared, expected %d", compared, tableLines)
		}
	})
}

// TestGoldenSeeds performs the runs with another seed, but for those that are slow or have none:
// none of their results is the same. A digest that cannot change would be no net.
func TestGoldenSeeds(t *testing.T) {
	t.Parallel()
	goldenOnly(t)
	longtest.Slow(t)
	table := readTable(t)
	s := newSuite(t, "2")
	varied := 0
	for _, g := range runs {
		if g.slow || g.fixed != "" {
			continue
		}
		varied++
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			for name, sum := range sorted.All(s.works[g.name].digests(t)) {
				if sum == table[g.name][name] {
					t.Errorf("%s does not depend on the seed", name)
				}
			}
		})
	}
	if varied < variedRuns {
		t.Errorf("%d runs with another seed, expected %d at least", varied, variedRuns)
	}
}

// readTable reads the digests of each run.
func readTable(t *testing.T) map[string]map[string]string {
	t.Helper()
	table := map[string]map[string]string{}
	for line := range strings.Lines(apptest.ReadText(t, tableFile)) {
		f := strings.Fields(line)
		if len(f) != 3 || len(f[2]) != 2*sha256.Size {
			t.Fatalf("%s: %q is no line of it", tableFile, line)
		}
		if table[f[0]] == nil {
			table[f[0]] = map[string]string{}
		}
		table[f[0]][f[1]] = f[2]
	}
	return table
}

// writeTable writes the digests of the runs that there are, sorted.
func writeTable(t *testing.T, table map[string]map[string]string) {
	t.Helper()
	var b strings.Builder
	for name, results := range sorted.All(table) {
		if !slices.ContainsFunc(runs, func(g golden) bool { return g.name == name }) {
			continue
		}
		for of, sum := range sorted.All(results) {
			fmt.Fprintf(&b, "%s  %s  %s\n", name, of, sum)
		}
	}
	write(t, tableFile, []byte(b.String()))
}

// write writes a file and the folder that it is in.
func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}
