package walkforward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

// Files of a study's folder.
const (
	foldsFile    = "folds.csv"
	pooledFile   = "pooled.csv"
	markdownFile = "summary.md"
	reportFile   = "walkforward.json"
	sheetDir     = "report"
)

// Report is what walkforward.json holds and --json prints. The keys are stable.
type Report struct {
	Plan    *Plan       `json:"plan"`
	Runs    []RunReport `json:"runs"`
	Summary *Summary    `json:"summary"`
	// Files are relative to the study's folder.
	Dir   string   `json:"dir,omitempty"`
	Files []string `json:"files,omitempty"`
}

// RunReport is one run.
type RunReport = study.RunReport[Outcome]

// Report describes the study as it stands.
func (s *Study) Report() (*Report, error) {
	sum, err := s.Summarize()
	if err != nil {
		return nil, err
	}
	return &Report{Plan: s.Plan, Summary: sum, Runs: s.Reports()}, nil
}

// Write writes the tables and plots of what is judged into the study's folder and, where that is
// all, the tear sheet of the base's pooled record, and fills in the report's files. Nothing is
// written while no fold is judged.
func (s *Study) Write(ctx context.Context, r *Report) error {
	sum := r.Summary
	if sum.Judged == 0 {
		return nil
	}
	files := []study.File{
		{Name: foldsFile, Write: sum.WriteFolds}, {Name: pooledFile, Write: func(w io.Writer) error { return s.WritePooled(sum, w) }}, {Name: markdownFile, Write: sum.WriteMarkdown},
	}
	drawn, err := sum.plots()
	if err != nil {
		return err
	}
	var errs []error
	r.Files, err = study.WriteFiles(s.Dir, append(files, drawn...))
	errs = append(errs, err)
	sheet := filepath.Join(s.Dir, sheetDir)
	if sum.Complete {
		doc, err := s.document(sum)
		if err == nil {
			_, err = report.Write(ctx, sheet, *doc)
		}
		errs = append(errs, err)
		r.Files = append(r.Files, sheetDir+"/"+report.PageName)
	} else {
		// That of fewer folds would be mistaken for one of all.
		errs = append(errs, os.RemoveAll(sheet))
	}
	r.Files = append(r.Files, reportFile)
	return errors.Join(append(errs, run.WriteJSON(filepath.Join(s.Dir, reportFile), r))...)
}

// plots are the Sharpe ratio and the return of the base's agent and of equal weight, by fold.
func (sum *Summary) plots() (list []study.File, err error) {
	for _, c := range []struct {
		key, name string
		unit      plots.Unit
	}{{"sharpe", "Sharpe ratio", plots.Plain}, {"annual_return", "annual return", plots.Percent}} {
		agent, equal := plots.Line{Name: "agent", Kind: plots.Agent}, plots.Line{Name: "equal-weight buy-and-hold", Kind: plots.Benchmark}
		var folds []string
		for _, f := range sum.Folds {
			if f.Variant != sum.Folds[0].Variant {
				continue
			}
			folds = append(folds, f.Fold)
			agent.Y, equal.Y = append(agent.Y, float64(f.row(RoleAgent, "")[c.key])), append(equal.Y, float64(f.row(RoleBenchmark, "")[c.key]))
		}
		title := fmt.Sprintf("%s by fold, out of sample", c.name)
		f, err := plots.Bars(c.key, title+", of the agent and of equal-weight buy-and-hold", title, c.unit, folds, []plots.Line{agent, equal})
		if err != nil {
			return nil, err
		}
		for name, write := range f.Files() {
			list = append(list, study.File{Name: name, Write: write})
		}
	}
	return list, nil
}

// document is the pooled record of the base in the form of a report.
func (s *Study) document(sum *Summary) (*report.Document, error) {
	p := sum.pools[0]
	digest, err := configs.Digest(s.Plan.Study)
	if err != nil {
		return nil, err
	}
	first := p.ranges[0]
	d := &report.Document{
		Title: "Walk-forward of " + s.Plan.Base, Dates: append([]time.Time{first.dates[0]}, p.samples[0].ends...), PeriodsPerYear: p.samples[0].periods, PeriodsFrom: "the test ranges' own",
		RiskFree: s.outcomes()[0].RiskFree, LookAhead: p.lookAhead, Notes: sum.Notes, Bootstrap: report.Bootstrap{Resamples: resamples, Level: level},
		Trials:     report.Trials{Count: sum.Trials, Counted: sum.Counted + "."},
		Provenance: []report.KeyValue{{Key: "study_sha256", Value: digest}, {Key: "folds", Value: fmt.Sprint(len(s.Plan.Folds))}, {Key: "seeds", Value: fmt.Sprint(s.Plan.Seeds)}},
	}
	d.Trials.SharpeVariance = float64(sum.Deflated[Base].Variance)
	d.Split = report.Split{Name: "walk-forward test ranges", First: d.Dates[0], Last: d.Dates[len(d.Dates)-1]}
	for k, name := range p.names {
		one := p.samples[k]
		st := report.Strategy{Name: name, Role: report.Baseline, Value: make([]float64, len(one.r)+1), Cash: []float64{1}, Turnover: make([]float64, len(one.r)), Fees: make([]float64, len(one.r))}
		st.Value[0] = 1
		for t, r := range one.r {
			st.Value[t+1] = st.Value[t] * (1 + r)
			st.Turnover[t], st.Fees[t] = one.turnover[t]*st.Value[t], one.fees[t]*st.Value[t]
		}
		for _, r := range p.ranges {
			st.Cash = append(st.Cash, r.records[k].Cash[1:]...)
		}
		switch p.roles[k] {
		case RoleAgent:
			st.Role, st.Note = report.Agent, "trained again for each fold, and judged on what comes after"
		case RoleSeed:
			st.Role, st.Note = report.Seed, "one of the agent's seeds"
		case RoleBenchmark:
			d.Benchmark, st.Note = k, "an equal share of the cash per stock at the beginning of each fold"
		}
		d.Strategies = append(d.Strategies, st)
	}
	if math.IsNaN(performance.Sharpe(p.samples[p.find(RoleAgent)].r)) {
		d.Notes = append(d.Notes, "The returns of the agent do not vary.")
	}
	return d, nil
}
