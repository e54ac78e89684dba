package ablate

import (
	"errors"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/study"
)

// Files of a study's folder.
const (
	runsFile     = "ablation.csv"
	summaryFile  = "summary.csv"
	effectsFile  = "factors.csv"
	markdownFile = "summary.md"
	reportFile   = "ablation.json"
)

// Report is what ablation.json holds and --json prints. The keys are stable.
type Report struct {
	Summary  *Summary    `json:"summary"`
	Runs     []RunReport `json:"runs"`
	Estimate *Estimate   `json:"estimate,omitempty"`
	// Files are relative to the study's folder.
	Dir   string   `json:"dir,omitempty"`
	Files []string `json:"files,omitempty"`
}

// RunReport is one run.
type RunReport struct {
	Cell    string   `json:"cell"`
	Seed    uint64   `json:"seed"`
	Dir     string   `json:"dir"`
	State   string   `json:"state"`
	Error   string   `json:"error,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Report describes the study as it stands. Directories are relative to the study's folder.
func (s *Study) Report() (*Report, error) {
	r := &Report{Summary: s.Summarize()}
	for _, run := range s.runs {
		dir, err := filepath.Rel(s.Dir, run.Dir)
		if err != nil {
			return nil, err
		}
		one := RunReport{Cell: run.Cell, Seed: run.Seed, Dir: filepath.ToSlash(dir), State: run.State, Outcome: run.Outcome}
		if run.Err != nil {
			one.Error = run.Err.Error()
		}
		r.Runs = append(r.Runs, one)
	}
	return r, nil
}

// Write writes the tables and plots of what is finished into the study's folder and fills in the
// report's files. Nothing is written while no run is finished.
func (s *Study) Write(r *Report) error {
	if r.Summary.Done == 0 {
		return nil
	}
	figures, err := r.Summary.figures()
	if err != nil {
		return err
	}
	files := []study.File{
		{Name: runsFile, Write: s.WriteRuns}, {Name: summaryFile, Write: r.Summary.WriteCSV}, {Name: effectsFile, Write: r.Summary.WriteEffects}, {Name: markdownFile, Write: r.Summary.WriteMarkdown},
	}
	files = append(files, figures...)
	r.Files, err = study.WriteFiles(s.Dir, files)
	r.Files = append(r.Files, reportFile)
	return errors.Join(err, study.WriteJSON(filepath.Join(s.Dir, reportFile), r))
}
