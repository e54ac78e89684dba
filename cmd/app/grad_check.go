package app

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// gradCheck is what onnxrl grad check prints; the JSON keys are stable. An infinite error is null.
type gradCheck struct {
	Engine    string           `json:"engine"`
	Models    []gradCheckModel `json:"models"`
	Tensors   int              `json:"tensors"`
	MaxError  *float64         `json:"max_error"`
	Tolerance float64          `json:"tolerance"`
	OK        bool             `json:"ok"`
}

type gradCheckModel struct {
	Dir      string            `json:"dir"`
	OK       bool              `json:"ok"`
	Error    string            `json:"error,omitempty"`
	MaxError *float64          `json:"max_error"`
	Tensors  []gradCheckTensor `json:"tensors"`
}

type gradCheckTensor struct {
	Point    string   `json:"point"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	MaxError *float64 `json:"max_error"`
	// Rounding is the error with rounding noise of a gradient that is zero in theory, which
	// MaxError does not count.
	Rounding float64 `json:"rounding,omitempty"`
	Problem  string  `json:"problem,omitempty"`
}

func (a *app) gradCheckCommand() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "check DIR…",
		Short: "Compare gradients with those of another framework",
		Long: `Runs models forward and backward and compares outputs and gradients with files. A DIR holds

  model.onnx              the forward model
  data/input_I.pb         inputs
  data/output_K.pb        expected outputs
  data/cotangent_K.pb     the loss is the sum of output·cotangent
  data/grad_param_J.pb    expected gradients of initializers, by the name inside
  data/grad_input_I.pb    expected gradients of inputs

and may hold more points of the same shapes in data_2, data_3, …, which run through the same program; or DIR is a folder of such directories. Errors are relative: max|Δ| / (1e-6 + max|expected|). The exit status is 0 only if every error is at most 1e-4 and nothing is missing.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var dirs []string
			for _, arg := range args {
				found, err := fixtureDirs(arg)
				if err != nil {
					return fmt.Errorf("grad check: %w", err)
				}
				dirs = append(dirs, found...)
			}
			eng, err := a.foreign(cmd.Context(), a.engine)
			if err != nil {
				return err
			}
			sum := gradCheck{Engine: eng.Name(), Tolerance: gradcheck.FixtureTolerance, OK: true, Models: []gradCheckModel{}}
			worst := 0.0
			bar := progress.Start(a.err, progress.Options{Label: "check", Unit: "models", Total: int64(len(dirs)), Quiet: a.quiet})
			for _, dir := range dirs {
				r := gradcheck.CheckFixture(cmd.Context(), eng, dir)
				if err := cmd.Context().Err(); err != nil {
					bar.Finish()
					return err
				}
				bar.Add(1)
				sum.Tensors += len(r.Tensors)
				sum.OK = sum.OK && r.OK()
				if worst = max(worst, r.MaxError); r.Err != nil {
					worst = math.Inf(1)
				}
				sum.Models = append(sum.Models, checkedModel(r))
			}
			bar.Finish()
			sum.MaxError = finite(worst)
			if a.json {
				err = a.printJSON(sum)
			} else {
				err = a.printGradCheck(sum, worst, verbose)
			}
			if err == nil && !sum.OK {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print every tensor")
	return cmd
}

// fixtureDirs returns dir when it holds a model, else the directories below it that do.
func fixtureDirs(dir string) ([]string, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%s is a file: expected a directory with model.onnx and data", dir)
	}
	var dirs []string
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == "model.onnx" {
			dirs = append(dirs, filepath.Dir(p))
		}
		return err
	})
	if err == nil && len(dirs) == 0 {
		err = fmt.Errorf("%s: there is no model.onnx in it or below", dir)
	}
	slices.Sort(dirs)
	return dirs, err
}

// finite is for JSON, which has no infinity.
func finite(v float64) *float64 {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return nil
	}
	return &v
}

func checkedModel(r gradcheck.FixtureResult) gradCheckModel {
	m := gradCheckModel{Dir: r.Dir, OK: r.OK(), MaxError: finite(r.MaxError), Tensors: []gradCheckTensor{}}
	switch {
	case r.Err != nil:
		m.Error, m.MaxError = firstLine(r.Err), nil
	case len(r.Tensors) == 0:
		m.Error = "nothing was compared"
	}
	for _, t := range r.Tensors {
		m.Tensors = append(m.Tensors, gradCheckTensor{Point: t.Point, Kind: t.Kind, Name: t.Name, MaxError: finite(t.Error), Rounding: t.Rounding, Problem: t.Problem})
	}
	return m
}

func (a *app) printGradCheck(s gradCheck, worst float64, verbose bool) error {
	width := 0
	for _, m := range s.Models {
		width = max(width, len(filepath.Base(m.Dir)))
	}
	var errs []error
	line := func(format string, v ...any) {
		_, err := fmt.Fprintf(a.out, format+"\n", v...)
		errs = append(errs, err)
	}
	for _, m := range s.Models {
		status := "ok"
		if !m.OK {
			status = "FAIL"
		}
		if m.Error != "" {
			line("%-*s  %s  %s", width, filepath.Base(m.Dir), status, m.Error)
			continue
		}
		line("%-*s  %3d tensors  max error %-9s  %s", width, filepath.Base(m.Dir), len(m.Tensors), number(m.MaxError), status)
		for _, t := range m.Tensors {
			if t.Rounding > 0 {
				line("    %s%-6s %s  error %.3g is rounding noise beside the model's largest gradient, not counted", t.at(), t.Kind, t.Name, t.Rounding)
				continue
			}
			bad := t.MaxError == nil || *t.MaxError > s.Tolerance
			if bad || verbose {
				line("    %s%-6s %s  error %s  %s", t.at(), t.Kind, t.Name, number(t.MaxError), t.Problem)
			}
		}
	}
	line("%d models, %d tensors, max error %.3g", len(s.Models), s.Tensors, worst)
	return errors.Join(errs...)
}

// at names the point of the comparison in front of it, unless it is the first.
func (t gradCheckTensor) at() string {
	if t.Point == "data" {
		return ""
	}
	return t.Point + " "
}

func number(v *float64) string {
	if v == nil {
		return "infinite"
	}
	return fmt.Sprintf("%.3g", *v)
}
