package ablate

import (
	"errors"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/run"
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
type RunReport = study.RunReport[Outcome]

// Report describes the study as it stands.
func (s *Study) Report() *Report { return &Report{Summary: s.Summarize(), Runs: s.Reports()} }

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
	return errors.Join(err, run.WriteJSON(filepath.Join(s.Dir, reportFile), r))
}
