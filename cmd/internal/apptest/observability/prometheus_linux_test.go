package observability

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// prometheusVar names a prometheus to test with, with promtool beside it; those that are found by
// their names are used, too.
const prometheusVar = "ONNXRL_PROMETHEUS"

// prometheus returns the path of a program of Prometheus' package, or leaves the test out.
func prometheus(t *testing.T, program string) string {
	t.Helper()
	if path := os.Getenv(prometheusVar); path != "" {
		return filepath.Join(filepath.Dir(path), program)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(prometheusVar + " is not set, and there is no " + program + ": nothing was put to a Prometheus")
	}
	return path
}

// patience is how long a query may take to have data: runs begin, and are scraped a few times.
const patience = 3 * time.Minute

// scrapeEvery is how often the tests' Prometheus asks, and rateInterval what Grafana makes of that.
const scrapeEvery, rateInterval = "500ms", "3s"

// server is a Prometheus that scrapes.
type server struct{ base string }

// startPrometheus runs a Prometheus that scrapes addresses by job.
func startPrometheus(t *testing.T, targets map[string][]string) server {
	t.Helper()
	program := prometheus(t, "prometheus")
	dir := t.TempDir()
	type static struct {
		Targets []string `json:"targets"`
	}
	type scrape struct {
		Job     string   `json:"job_name"`
		Targets []static `json:"static_configs"`
	}
	config := struct {
		Global map[string]string `json:"global"`
		Scrape []scrape          `json:"scrape_configs"`
	}{Global: map[string]string{"scrape_interval": scrapeEvery, "scrape_timeout": scrapeEvery}}
	for job, list := range sorted.All(targets) {
		config.Scrape = append(config.Scrape, scrape{job, []static{{list}}})
	}
	text, err := json.Marshal(config) // which is YAML
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// It says where it listens at the level info only.
	r := apptest.Launch(t, exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0", "--log.level=info"))
	s := server{"http://" + r.Finds(listensOn)}
	for {
		if code, _, err := apptest.Call(s.base+"/-/ready", ""); err != nil {
			t.Fatalf("prometheus ended: %v\n%s", err, r.Log)
		} else if code == 200 {
			return s
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// listensOn is what Prometheus says of its address.
var listensOn = regexp.MustCompile(`msg="Listening on".* address=(\S+)\n`)

// query returns how many series of a query have a finite value now.
func (s server) query(expr string) (n int, err error) {
	resp, err := http.Get(s.base + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				// Value is a time and a number as text.
				Value [2]any `json:"value"`
			} `json:"result"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if answer.Status != "success" {
		return 0, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	for _, r := range answer.Data.Result {
		if v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64); err == nil && v-v == 0 {
			n++
		}
	}
	return n, nil
}

// serving begins a server with a version in the shadow, asks it all the time, and returns where it
// is.
func serving(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var refs []string
	for _, outputs := range []string{"one", "other"} {
		v := apptest.Decoded[struct {
			Digest string `json:"digest"`
		}](t, apptest.Succeed(t, "models", "publish", apptest.MLPModel(t), "--name", "m", "--store", dir, "--description", outputs, "--json", "-q"))
		refs = append(refs, v.Digest)
	}
	policy := filepath.Join(apptest.Trained(t, "env: {kind: cartpole}\nagent: {kind: ppo, hidden: [8], n_steps: 32}\ntrain: {num_envs: 2, total_env_steps: 256, validation: {every_steps: 128}}\npublish: {observations: 50}\n"), "best.onnx")
	r := apptest.StartServe(t, "--store", dir, "--ab", "m="+refs[0]+":1", "--shadow", "m="+refs[1], "--model", "policy="+policy, "--set", "defaults.drift.window=100", "--decisions", t.TempDir(), "--decisions-every", "200ms")
	const observation = `{"inputs":[{"name":"observation","shape":[1,4],"datatype":"FP32","data":[0,0,0,0]}],"outputs":[{"name":"%s"}]}`
	list := [][2]string{
		{"/v2/models/m/infer", `{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`},
		{"/v2/models/policy/infer", fmt.Sprintf(observation, "action")},
		{"/v2/models/policy/infer", fmt.Sprintf(observation, "log_probs")}, // no decision
	}
	for _, x := range list {
		r.Want(200, x[0], x[1])
	}
	asked, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		for wait := time.Tick(20 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-wait:
				for _, x := range list {
					if _, _, err := apptest.Call(r.URL(x[0]), x[1]); err != nil {
						return
					}
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-asked
	})
	return r.First.HTTP
}

// trading begins a service that trades on bars that come all the time, under limits that it passes,
// and returns where it is.
func trading(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run, all, bars := filepath.Join(dir, "run"), filepath.Join(dir, "all.jsonl"), filepath.Join(dir, "bars.jsonl")
	apptest.Succeed(t, "train", "demo", "-q", "--out", run, "--set", "env.mask=market", "--set", "train.total_env_steps=40", "--set", "train.num_envs=2", "--set", "agent.n_steps=10", "--set", "train.validation.every_steps=40", "--set", "publish={observations: 64, allow_ties: true}", "--set", "env.risk={drawdown: {limit: 0.05}, cvar: {limit: 0.02}}")
	apptest.Succeed(t, "data", "feed", run, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", all)
	doc := apptest.Write(t, "live.yaml", fmt.Sprintf("name: demo\npolicy: %s\nstate: %s\nhttp: {address: \"127.0.0.1:0\"}\nsource: {kind: file, path: %s, follow: true}\nsink: {kind: file, path: %s}\nrisk: {orders: {per_minute: 400}}\n", run, filepath.Join(dir, "state"), bars, filepath.Join(dir, "out")))
	lines := strings.SplitAfter(apptest.ReadText(t, all), "\n")
	f, err := os.Create(bars)
	if err != nil {
		t.Fatal(err)
	}
	r := background(t, "live", doc)
	r.Says("trades with")
	written, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for wait := time.Tick(20 * time.Millisecond); len(lines) > 4; lines = lines[4:] {
			select {
			case <-stop:
				return
			case <-wait:
				if _, err := f.WriteString(strings.Join(lines[:4], "")); err != nil {
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-written
		_ = f.Close()
	})
	return liveAddress.FindStringSubmatch(r.Log.String())[1]
}

var liveAddress = regexp.MustCompile(`state on http://([^/]*)/live/state`)

// TestEveryQuery puts every query of every panel and variable to a Prometheus that scrapes runs of
// the program: trainings with masks, a replay and a constraint, a population with its router, a
// server that is asked, and a service that trades. Each has to return data.
func TestEveryQuery(t *testing.T) {
	longtest.Nightly(t)
	prometheus(t, "prometheus")
	const long = "train.total_env_steps=100000000"
	// Episodes that end and metrics that are recorded soon.
	const soon = `experts.set={agent.lora: {rank: 8, target: ["*project*"]}, train.log_interval_steps: 50, env.episode.length: 20}`
	s := startPrometheus(t, map[string][]string{
		"onnxrl-train": {
			train(t, "train", "invalid_maskable_ppo", "--set", long),
			train(t, "train", "pendulum_sac", "--set", long, "--set", "agent.learning_starts=200", "--set", "train.log_interval_steps=200", "--set", "train.validation.every_steps=1000"),
			train(t, "train", "demo_drawdown", "--set", long),
		},
		"onnxrl-population": {train(t, "train", "population", "population_demo", "--set", "router.every=1", "--set", "experts.every=1", "--set", "pretrain.fit.epochs=1", "--set", soon)},
		"onnxrl-serve":      {serving(t)},
		"onnxrl-live":       {trading(t)},
	})
	var left []string
	panels := map[string]string{}
	ask := func(where, expr string) {
		expr = fill(expr)
		panels[expr] = where
		left = append(left, expr)
	}
	for _, b := range boards() {
		for _, v := range b.variables {
			ask(b.name+", variable "+v.name, fmt.Sprintf("group by (%s) (%s)", v.of, v.metric))
		}
		for _, r := range b.rows {
			for _, p := range r.panels {
				for _, q := range p.queries {
					ask(b.name+", "+p.title, q.expr)
				}
			}
		}
	}
	asked := len(left)
	deadline := time.Now().Add(patience)
	for wait := time.Tick(500 * time.Millisecond); len(left) > 0 && time.Now().Before(deadline); <-wait {
		var again []string
		for _, expr := range left {
			n, err := s.query(expr)
			if err != nil {
				t.Fatalf("%s: %v", panels[expr], err)
			}
			if n == 0 {
				again = append(again, expr)
			}
		}
		left = again
	}
	for _, expr := range left {
		t.Errorf("%s: no data: %s", panels[expr], expr)
	}
	if len(boards()) != 4 || asked < 110 {
		t.Errorf("%d queries of %d dashboards", asked, len(boards()))
	}
	t.Logf("%d queries have data", asked-len(left))
	if _, err := s.query("sum by ("); err == nil {
		t.Error("half a query passes")
	}
	// A series that nobody has returns nothing, so that the test can fail.
	if n, err := s.query("onnxrl_no_such_metric"); err != nil || n != 0 {
		t.Errorf("%d series of no metric, %v", n, err)
	}
}

// fill puts into a query what Grafana would: every value of every variable.
func fill(expr string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", rateInterval)
	return regexp.MustCompile(`\$[a-z]+`).ReplaceAllString(expr, ".*")
}
