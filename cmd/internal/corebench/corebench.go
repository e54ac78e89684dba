package corebench

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Options of a run. The zero value, with an engine, measures everything as the targets are stated.
type Options struct {
	// Engine must be ONNX Runtime: its floor and its bare products are what the rows are compared
	// with.
	Engine engine.Compiler
	// Rows are patterns (as of path.Match) of the rows to measure; none means all.
	Rows []string
	// Rounds is how often the two sides take turns. 0 means 15.
	Rounds int
	// Round is the time that one side gets in one round. 0 means 20 ms.
	Round time.Duration
	// Steps is the number of training steps over which memory is watched. 0 means a million.
	Steps int
	// Solo leaves the references out, for measuring beside another program.
	Solo bool
	// Began, if set, is called with the name of each benchmark before it runs.
	Began func(name string)
}

// measurement makes one or more rows whose names begin with its own.
type measurement struct {
	name string
	run  func(ctx context.Context, b *bench) ([]benchmark.Row, error)
}

// bench is what benchmarks work with.
type bench struct {
	Options
	pace pace
}

// benchmarks is the table of everything that is measured, in the order of the report.
func benchmarks() []measurement {
	var list []measurement
	for _, p := range policies {
		list = append(list, measurement{"policy/" + p.name, p.measure})
	}
	for _, w := range workloads {
		list = append(list, measurement{"step/" + w.name, w.measure})
	}
	for _, w := range workloads {
		if w.parallel {
			list = append(list, measurement{"parallel/" + w.name, w.measureParallel})
		}
	}
	for _, n := range adamSizes {
		list = append(list, measurement{fmt.Sprintf("adam/%d", n), adam(n)})
	}
	return append(list, measurement{"compile", compile}, measurement{"memory", memory})
}

// Names lists the benchmarks.
func Names() []string {
	var names []string
	for _, b := range benchmarks() {
		names = append(names, b.name)
	}
	return names
}

// Run measures. An error means that something could not be measured; missed targets are counted in
// the report.
func Run(ctx context.Context, o Options) (*benchmark.Report, error) {
	if o.Rounds == 0 {
		o.Rounds = 15
	}
	if o.Round == 0 {
		o.Round = 20 * time.Millisecond
	}
	if o.Steps == 0 {
		o.Steps = 1_000_000
	}
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("core: %w", err)
	}
	b := &bench{Options: o, pace: pace{rounds: o.Rounds, each: o.Round, solo: o.Solo}}
	r := &benchmark.Report{Machine: benchmark.ThisMachine()}
	for _, bm := range benchmarks() {
		if !o.selected(bm.name) {
			continue
		}
		if o.Began != nil {
			o.Began(bm.name)
		}
		rows, err := bm.run(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("core: %s: %w", bm.name, err)
		}
		for _, row := range rows {
			row.Judge()
			if !row.Pass {
				r.Missed++
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

func (o Options) validate() error {
	if o.Rounds < 1 || o.Round < 0 || o.Steps < 10 {
		return fmt.Errorf("%d rounds of %v and %d steps: expected at least 1, a positive time and 10", o.Rounds, o.Round, o.Steps)
	}
	for _, p := range o.Rows {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("row pattern %q: %w", p, err)
		}
		if !slices.ContainsFunc(Names(), func(n string) bool { return matches(p, n) }) {
			return fmt.Errorf("row pattern %q matches nothing; there are %v", p, Names())
		}
	}
	return nil
}

func (o Options) selected(name string) bool {
	return len(o.Rows) == 0 || slices.ContainsFunc(o.Rows, func(p string) bool { return matches(p, name) })
}

// matches accepts a pattern of the whole name, or of its first part.
func matches(pattern, name string) bool {
	whole, _ := path.Match(pattern, name)
	first, _ := path.Match(pattern, path.Dir(name))
	return whole || first
}
