package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// run is a training run that is watched.
type run struct {
	Item
	// mu guards what follows.
	mu     sync.Mutex
	follow follower
	series map[string]*Series
	limit  int
	// lines counts lines of metrics, bad those that were none.
	lines, bad int
	step       int64
	// first and time are when the first and the newest line were written, in seconds since 1970;
	// 0 without one.
	first, time float64
	// reading says that there is more to read.
	reading bool
	problem string

	about    about
	finished finished
	// version is that of the board when something here changed last.
	version int
}

// about is what a run says of itself at its beginning.
type about struct {
	stamp        int64
	name, config string
	seed         *uint64
	engine       string
	threads      int
	// group is of all runs of this configuration, whatever their seeds.
	group string
	total int64
	agent string
	env   string
	// metric is what the best policy is chosen by.
	metric string
}

// finished is what a run says of itself at its end.
type finished struct {
	// stamp is of finished.json, interval of a member's file, which has ended with an interval of
	// its search.
	stamp, interval int64

	done    bool
	best    int64
	score   *float64
	seconds float64
}

// RunSummary is a line of the table of runs. Numbers are those of its files.
type RunSummary struct {
	Item
	Name  string `json:"name"`
	Group string `json:"group"`
	// Variant tells runs of one name and other configurations apart: the folder that they lie in.
	Variant string  `json:"variant"`
	Agent   string  `json:"agent"`
	Env     string  `json:"env"`
	Seed    *uint64 `json:"seed"`
	// State is reading, finished, running (something was written in the last two minutes) or still.
	State string `json:"state"`
	// Steps is the newest env step of Total; 0 for not known.
	Steps int64 `json:"steps"`
	Total int64 `json:"total"`
	// Updated is when the newest line was written, in seconds since 1970; Began the first.
	Updated float64 `json:"updated"`
	Began   float64 `json:"began"`
	Metric  string  `json:"metric,omitempty"`
	// Score is the newest value of eval/METRIC, Best the one of the run's best policy.
	Score    *float64 `json:"score"`
	Best     *float64 `json:"best"`
	BestStep int64    `json:"best_step,omitempty"`
	FPS      *float64 `json:"fps"`
	Return   *float64 `json:"return"`
	// Points counts values, Bad lines that were none of metrics, Broken values that are no numbers.
	Points  int64    `json:"points"`
	Bad     int      `json:"bad"`
	Broken  int64    `json:"broken"`
	Tags    []string `json:"tags"`
	Problem string   `json:"problem,omitempty"`
	Engine  string   `json:"engine,omitempty"`
	Threads int      `json:"threads,omitempty"`
	// Process is what a run costs while it goes on, as far as the system tells.
	Process *Process `json:"process,omitempty"`
	Version int      `json:"version"`
}

func newRun(item Item, limit int) *run {
	return &run{Item: item, follow: follower{path: filepath.Join(item.path, metricsFile)}, series: map[string]*Series{}, limit: limit, reading: true}
}

// read reads what has come, at most budget bytes of it, and reports whether anything changed.
func (r *run) read(budget int, buffer []byte, line *metricsLine) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.problem
	n, more, err := r.follow.next(budget, buffer, r.begin, func(text []byte) {
		if len(bytes.TrimSpace(text)) == 0 {
			return
		}
		if err := line.parse(text); err != nil {
			r.bad++
			return
		}
		r.lines++
		r.step = line.step
		if !math.IsNaN(line.time) {
			if r.first == 0 {
				r.first = line.time
			}
			r.time = line.time
		}
		for _, p := range line.pairs {
			s := r.series[string(p.tag)]
			if s == nil {
				if len(r.series) == mostTags {
					r.bad++
					continue
				}
				s = NewSeries(r.limit)
				r.series[string(p.tag)] = s
			}
			s.Add(line.step, p.value)
		}
	})
	r.problem = ""
	if err != nil {
		r.problem = err.Error()
	}
	more = more && err == nil
	changed = n > 0 || more != r.reading || r.problem != was
	r.reading = more
	if r.readAbout() {
		changed = true
	}
	if r.readFinished() {
		changed = true
	}
	return changed
}

// mostTags is the most tags of a run.
const mostTags = 4096

// begin forgets the metrics, which are read again.
func (r *run) begin() {
	clear(r.series)
	r.lines, r.bad, r.step, r.first, r.time = 0, 0, 0, 0, 0
}

// mostDocument is the most bytes of a file that is read as a whole.
const mostDocument = 64 << 20

// openRegular opens a file that is one: what lies below a folder may be a pipe, which whoever opens
// it waits for, or a device without an end.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return os.Open(path)
}

// readFile reads a file of at most mostDocument bytes.
func readFile(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostDocument+1))
	if err == nil && len(text) > mostDocument {
		err = fmt.Errorf("%s has more than %d MiB, which is too much to show", path, mostDocument>>20)
	}
	return text, err
}

// stamp changes with a file; 0 without one.
func stamp(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano() ^ info.Size()
}

func (r *run) readAbout() bool {
	path := filepath.Join(r.path, "lineage.json")
	at := stamp(path)
	if at == r.about.stamp && r.about.group != "" {
		return false
	}
	a := about{stamp: at, name: filepath.Base(r.path), metric: "mean_reward"}
	var l struct {
		Name    string   `json:"name"`
		Seeds   []uint64 `json:"seeds"`
		Engine  string   `json:"engine"`
		Threads int      `json:"threads"`
		Config  string   `json:"config"`
	}
	if text, err := readFile(path); err == nil && json.Unmarshal(text, &l) == nil {
		a.name, a.engine, a.threads, a.config = l.Name, l.Engine, l.Threads, l.Config
		if len(l.Seeds) == 1 {
			a.seed = &l.Seeds[0]
		}
	}
	if a.config == "" {
		if text, err := readFile(filepath.Join(r.path, "config.yaml")); err == nil {
			a.config = string(text)
		}
	}
	var c struct {
		Seed *uint64 `yaml:"seed"`
		Env  struct {
			Kind string `yaml:"kind"`
			ID   string `yaml:"id"`
		} `yaml:"env"`
		Agent struct {
			Kind string `yaml:"kind"`
		} `yaml:"agent"`
		Train struct {
			Total      int64 `yaml:"total_env_steps"`
			Validation struct {
				Metric string `yaml:"metric"`
			} `yaml:"validation"`
		} `yaml:"train"`
	}
	// Of a configuration that cannot be read the table has less to say.
	if yaml.Unmarshal([]byte(a.config), &c) == nil {
		a.agent, a.env, a.total = c.Agent.Kind, c.Env.Kind, c.Train.Total
		if c.Env.ID != "" {
			a.env = c.Env.ID
		}
		if c.Train.Validation.Metric != "" {
			a.metric = c.Train.Validation.Metric
		}
		if a.seed == nil {
			a.seed = c.Seed
		}
	}
	a.group = groupOf(r.ID, a.name, a.config)
	a.config = "" // long, and read again where it is shown
	r.about = a
	return true
}

// groupOf is the same for runs of one configuration, whatever their seeds. A run without a configuration
// is alone.
func groupOf(id, name, config string) string {
	if config == "" {
		config = id
	}
	h := sha256.New()
	fmt.Fprintln(h, name)
	for line := range strings.Lines(config) {
		if !strings.HasPrefix(line, "seed:") && !strings.HasPrefix(line, "seeds:") {
			io.WriteString(h, line)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func (r *run) readFinished() bool {
	path := filepath.Join(r.path, "finished.json")
	at, interval := stamp(path), stamp(filepath.Join(r.path, "interval.json"))
	if at == r.finished.stamp && interval == r.finished.interval {
		return false
	}
	f := finished{stamp: at, interval: interval, done: interval != 0}
	var e struct {
		Metric     string             `json:"metric"`
		Best       int64              `json:"best_env_steps"`
		Validation map[string]float64 `json:"validation"`
		Seconds    float64            `json:"seconds"`
	}
	text, err := readFile(path)
	if err == nil && json.Unmarshal(text, &e) == nil {
		f.done, f.best, f.seconds = true, e.Best, e.Seconds
		if v, ok := e.Validation[e.Metric]; ok {
			f.score = &v
		}
	}
	r.finished = f
	return true
}

// stillAfter is after how many seconds without a line a run counts as one that does not run.
const stillAfter = 120

// summary is the run's line in the table at a time in seconds since 1970.
func (r *run) summary(now float64) RunSummary {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.about
	s := RunSummary{
		Item: r.Item, Name: a.name, Group: a.group, Variant: variantOf(r.ID), Agent: a.agent, Env: a.env, Seed: a.seed, Steps: r.step, Total: a.total, Updated: r.time, Began: r.first, Metric: a.metric, Best: r.finished.score, BestStep: r.finished.best,
		Bad: r.bad + r.follow.long, Problem: r.problem, Engine: a.engine, Threads: a.threads, Tags: []string{}, Version: r.version,
	}
	switch {
	case r.reading:
		s.State = "reading"
	case r.finished.done:
		s.State = "finished"
	case now-r.time < stillAfter:
		s.State = "running"
	default:
		s.State = "still"
	}
	for tag, series := range sorted.All(r.series) {
		s.Tags = append(s.Tags, tag)
		s.Points += series.Points()
		s.Broken += series.Broken()
	}
	s.Score, s.FPS, s.Return = r.last("eval/"+a.metric), r.last("time/fps"), r.last("rollout/ep_rew_mean")
	return s
}

// last is the newest value of a tag, nil without one, and where it is no number.
func (r *run) last(tag string) *float64 {
	if s := r.series[tag]; s != nil {
		if p, ok := s.Last(); ok {
			return &p.Value
		}
	}
	return nil
}

var seedFolder = func(name string) bool { return strings.HasPrefix(name, "seed-") }

// variantOf is the path of a run without the folder of its seed.
func variantOf(id string) string {
	parts := strings.Split(id, "/")
	if n := len(parts) - 1; n > 0 && seedFolder(parts[n]) {
		parts = parts[:n]
	}
	return strings.Join(parts, "/")
}

// resize gives every series so many buckets.
func (r *run) resize(limit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = limit
	for _, s := range sorted.All(r.series) {
		s.Limit(limit)
	}
}

// SeriesData is a series as the page draws it: of bucket i the first env step, least, greatest and
// mean value.
type SeriesData struct {
	Run   string    `json:"run"`
	Tag   string    `json:"tag"`
	Steps []int64   `json:"steps"`
	Min   []float64 `json:"min"`
	Max   []float64 `json:"max"`
	Mean  []float64 `json:"mean"`
	// Points is how many values they stand for; Exact says that each stands for one.
	Points int64  `json:"points"`
	Exact  bool   `json:"exact"`
	Last   *Point `json:"last"`
}

// data is nil without such a tag.
func (r *run) data(tag string) *SeriesData {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[tag]
	if s == nil {
		return nil
	}
	n := len(s.Buckets())
	d := &SeriesData{Run: r.ID, Tag: tag, Steps: make([]int64, n), Min: make([]float64, n), Max: make([]float64, n), Mean: make([]float64, n), Points: s.Points(), Exact: s.Exact()}
	for i, b := range s.Buckets() {
		d.Steps[i], d.Min[i], d.Max[i], d.Mean[i] = b.Step, b.Min, b.Max, b.Mean()
	}
	if p, ok := s.Last(); ok {
		d.Last = &p
	}
	return d
}
