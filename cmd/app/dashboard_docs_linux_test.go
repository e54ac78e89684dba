package app

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/dashboard"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// dashboardFolder is where the commands of docs/dashboard.md have been run.
var dashboardFolder struct {
	sync.Once
	dir string
	// commands counts those that ran, and watched are the arguments of those that watch.
	commands int
	watched  [][]string
}

// dashboardRuns runs the commands of docs/dashboard.md as they are written, once for all tests that
// ask for it, and returns the folder in which they ran; those that serve a page are left to the
// tests. Nothing in the folder may be changed.
func dashboardRuns(t *testing.T) string {
	t.Helper()
	d := &dashboardFolder
	d.Do(func() {
		dir := apptest.Shared(t, "dashboard-")
		for _, b := range fences(t, "../../docs/dashboard.md") {
			if b.language == "yaml" {
				if err := os.WriteFile(filepath.Join(dir, "search.yaml"), []byte(b.text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if b.language != "" {
				continue
			}
			for line := range strings.Lines(b.text) {
				line, into, redirected := strings.Cut(strings.TrimSpace(line), " > ")
				words := strings.Fields(line)
				if words[0] != "onnxrl" {
					t.Fatalf("docs/dashboard.md: %s: expected a command of onnxrl", line)
				}
				d.commands++
				if words[1] == "dashboard" {
					d.watched = append(d.watched, words[2:])
					continue
				}
				words = words[1:]
				if os.Getenv(longtest.Variable) == "" {
					words = shorter(words)
				}
				cmd := apptest.Program(t, words...)
				cmd.Dir = dir
				var said strings.Builder
				cmd.Stderr = &said
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("docs/dashboard.md: %s: %v\n%s%s", line, err, out, said.String())
				}
				if redirected {
					if err := os.WriteFile(filepath.Join(dir, into), out, 0o666); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		d.dir = dir
	})
	if d.dir == "" {
		t.Fatal("another test could not run the commands of docs/dashboard.md")
	}
	return d.dir
}

// shorter makes the trainings of docs/dashboard.md short by day: they are only given more.
func shorter(words []string) []string {
	more := map[string]string{
		"train cartpole_ppo": "train.total_env_steps=1024 train.validation.every_steps=512 agent.n_steps=256 eval.episodes=1",
		"train demo":         "train.total_env_steps=400 train.validation.every_steps=200 eval.bootstrap.samples=50",
	}[words[0]+" "+words[1]]
	for _, set := range strings.Fields(more) {
		words = append(words, "--set", set)
	}
	return words
}

// startDashboard runs the program in a folder and returns the page's address, and what ends it:
// with the test's context it would be killed.
func startDashboard(t *testing.T, dir string, args ...string) (address string, end func()) {
	t.Helper()
	cmd := apptest.Program(t, append([]string{"dashboard", "--json", "--http", "127.0.0.1:0", "--interval", "50ms"}, args...)...)
	cmd.Dir = dir
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var first dashboardStarted
	if err == nil {
		err = json.Unmarshal([]byte(line), &first)
	}
	if err != nil || first.HTTP == "" || first.PID != cmd.Process.Pid {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("%q: %v\n%s", line, err, said.String())
	}
	return "http://" + first.HTTP + "/", func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the dashboard ends with %v after an interrupt\n%s", err, said.String())
		}
	}
}

// overviewOf asks a dashboard until it has read everything.
func overviewOf(t *testing.T, address string) dashboard.Overview {
	t.Helper()
	for {
		r, err := http.Get(address + "data/overview")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		var o dashboard.Overview
		if err == nil {
			err = json.Unmarshal(text, &o)
		}
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %v: %s", r.StatusCode, err, text)
		}
		reading := o.Version == 0 && !o.Live
		for _, run := range o.Runs {
			reading = reading || run.State == "reading"
		}
		if !reading {
			return o
		}
	}
}

// TestTutorialDashboard runs the commands of docs/dashboard.md, and compares what the dashboards
// say with the files.
func TestTutorialDashboard(t *testing.T) {
	longtest.Nightly(t)
	dir := dashboardRuns(t)
	d := &dashboardFolder
	if d.commands != 9 || len(d.watched) != 2 {
		t.Fatalf("%d commands, %d dashboards", d.commands, len(d.watched))
	}
	address, end := startDashboard(t, dir, d.watched[0]...)
	defer end()
	o := overviewOf(t, address)
	kinds := map[dashboard.Kind]int{}
	for _, it := range o.Items {
		kinds[it.Kind]++
	}
	if len(o.Runs) != 6 || kinds[dashboard.Report] != 1 || kinds[dashboard.World] != 1 || kinds[dashboard.Trading] != 1 || kinds[dashboard.Population] != 1 || kinds[dashboard.Store] < 1 || !o.Explains || o.Problem != "" {
		t.Errorf("%d runs, %v, %q", len(o.Runs), kinds, o.Problem)
	}
	for _, run := range o.Runs {
		records, err := metrics.ReadJSONLines(filepath.Join(dir, run.ID, "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		values := int64(0)
		for _, r := range records {
			values += int64(len(r.Values))
		}
		if run.State != "finished" || run.Steps != records[len(records)-1].Step || run.Points+run.Broken != values || run.Bad != 0 {
			t.Errorf("%+v: %d values in the file", run, values)
		}
	}
	// A thousand runs may be compared at once.
	many := url.Values{"tag": {"rollout/ep_rew_mean"}}
	for range 1000 {
		many.Add("run", "runs/"+strings.Repeat("a/", 40))
	}
	if r, err := http.Get(address + "data/bands?" + many.Encode()); err != nil || r.StatusCode != http.StatusNotFound {
		t.Errorf("a question of %d bytes: %v, %v", len(many.Encode()), r, err)
	} else {
		r.Body.Close()
	}
	live, endLive := startDashboard(t, dir, d.watched[1]...)
	defer endLive()
	if o := overviewOf(t, live); !o.Live || len(o.Runs) != 0 {
		t.Errorf("%+v", o)
	}
}
