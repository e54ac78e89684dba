package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/export/format"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// exportFlags say what is exported, how and where to.
type exportFlags struct {
	store             storeFlag
	format, out, name string
	config, optimized string
	rows              int
	seed              uint64
	bind              bindFlags
	allowTies, sample bool
	precision         string
	decisions         decisionFlags
}

func (a *app) exportCommand() *cobra.Command {
	var f exportFlags
	names := make([]string, 0, 4)
	var about strings.Builder
	for _, form := range format.Forms() {
		names = append(names, form.Name)
		fmt.Fprintf(&about, "\n  %-7s %s", form.Name, form.About)
	}
	names = append(names, scmlFormat)
	fmt.Fprintf(&about, "\n  %-7s %s", scmlFormat, "a Python package of an agent for the official league of SCML, OUT")
	cmd := &cobra.Command{
		Use:   "export RUN|REF|MODEL.onnx|AGENT",
		Short: "Write a trained model for other programs, after proving it again",
		Long: `The published policy of a run, a version of an artefact store or an ONNX file is compared with the network that was trained, with its parameters as inputs. They are those of the run's newest checkpoint where it holds the published parameters, else those of the file. The rows come from the run's environment, or the one of --config, in which the policy and chance act in turns. Without an environment they are made up, with the numbers of --bind for extents that a model leaves open. A published policy needs no
environment, nor its Python: it is checked on its golden values too. When anything differs, nothing is written.

Formats:` + about.String() + `

` + referenceHelp,
		Example: `  onnxrl export runs/demo-1 --out agent.onnx
  onnxrl export runs/demo-1 --format triton --out repository
  onnxrl export runs/demo-1/artifacts//demo:best --format python --out agent
  onnxrl export agents/first --format scml --out first_agent
  onnxrl export net.onnx --bind time=20 --precision int8 --out small.onnx
  onnxrl export runs/cartpole --precision int8 --report parity --max-changed 0.01 --out small.onnx`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			do := a.export
			if f.format == scmlFormat {
				if err := onlyFlags(cmd, "--format "+scmlFormat, "format", "out"); err != nil {
					return fmt.Errorf("export %s: %w", args[0], err)
				}
				do = a.exportSCML
			}
			if err := do(cmd.Context(), args[0], &f); err != nil {
				return fmt.Errorf("export %s: %w", args[0], err)
			}
			return nil
		},
	}
	f.store.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.format, "format", "onnx", strings.Join(names, ", "))
	fl.StringVarP(&f.out, "out", "o", "", "file or folder that is written (required)")
	fl.StringVar(&f.name, "name", "", "name of the model (default: the artefact's, else the file's)")
	fl.StringVar(&f.config, "config", "", "configuration of the environment that observations are recorded in (default: that of the run)")
	fl.StringVar(&f.optimized, "optimized", "", "also write the graph to this file as ONNX Runtime optimises it, without what belongs to one kind of processor; in ONNX Runtime's own format where the name ends in .ort")
	fl.IntVar(&f.rows, "rows", bake.Observations, "least number of observations that parity is checked on")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of recorded observations")
	f.bind.add(cmd)
	fl.BoolVar(&f.allowTies, "allow-ties", false, fmt.Sprintf("accept a policy whose two best actions are less than %g apart in more than %g %% of the choices", bake.Margin, 100*bake.MaxTies))
	fl.BoolVar(&f.sample, "sample", false, "let the model draw actions as well")
	fl.StringVar(&f.precision, "precision", float32Precision, "float32; fp16: weights as float16; int8: weights as int8 by output channel, products with activations quantised row by row, convolutions computed in float32")
	f.decisions.add(fl)
	rarely(fl, "allow-ties", "bind", "episodes", "max-action-delta", "max-kl", "max-return-drop", "observations", "optimized", "seed")
	// The command's own error says nothing about other flags.
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// exportResult is the result; its keys are stable.
type exportResult struct {
	Source string   `json:"source"`
	Name   string   `json:"name"`
	Format string   `json:"format"`
	Out    string   `json:"out"`
	Files  []string `json:"files"`
	// Trained says what the model was compared with: "checkpoint", or "file" for its own
	// parameters.
	Trained string `json:"trained"`
	// Observations is "recorded", "made up", or "golden and made up" of a published version without
	// its environment; Rows is their number.
	Observations string      `json:"observations"`
	Rows         int         `json:"rows"`
	Parity       bake.Report `json:"parity"`
	// Batch is the number of rows that the model takes at once, absent where any will do.
	Batch int `json:"batch,omitempty"`
	// Precision is float32, fp16 or int8.
	Precision string `json:"precision"`
	// Kept are the larger weights that stay float32 in lower precision, and KeptSmall counts the
	// others.
	Kept      []bake.Kept `json:"kept_float32,omitempty"`
	KeptSmall int         `json:"kept_float32_small,omitempty"`
	// Loss is that of lower precision, absent without; Compared says on which observations, and
	// Return compares the returns of the published model and the exported one, absent without an
	// environment.
	Loss     *bake.Loss       `json:"loss,omitempty"`
	Compared string           `json:"compared,omitempty"`
	Return   *evaluate.Paired `json:"return,omitempty"`
	// Exceeded lists the bounds of the --max flags that were not kept; then Files is empty.
	Exceeded []string `json:"exceeded"`
	// Models are the published model and the exported one, and the optimised graph where it was
	// asked for.
	Models []exportSize `json:"models"`
	// Ratio is the time of a run of the exported model by that of the published one.
	Ratio float64 `json:"ratio"`
	// Engine ran everything.
	Engine string `json:"engine"`
}

// export does the whole; nothing is written before everything is checked.
func (a *app) export(ctx context.Context, target string, f *exportFlags) (err error) {
	form, err := format.Lookup(f.format)
	if err != nil {
		return fmt.Errorf("--format: %w, or %s", err, scmlFormat)
	}
	if f.rows < 1 {
		return fmt.Errorf("--rows %d: expected at least 1", f.rows)
	}
	if err := f.checkDecisions(); err != nil {
		return err
	}
	src, err := a.openExport(ctx, target, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	// A parity check takes long: obstacles to its result are reported before.
	if err := src.mayWrite(form, f); err != nil {
		return err
	}
	if !f.sample && f.format == "python" {
		// The class of that folder draws actions by default, as Stable-Baselines3's predict does.
		_, err := src.sampling(src.model)
		f.sample = err == nil
	}
	model, err := src.variant(f)
	if err != nil {
		return err
	}
	r := exportResult{Batch: src.batch, Source: src.from, Name: src.name, Format: f.format, Out: f.out, Precision: f.precision, Engine: src.engine.Name(), Files: []string{}, Exceeded: []string{}}
	if f.precision != float32Precision {
		r.Kept, r.KeptSmall = bake.KeptFloat(src.model, model)
	}
	rows, err := a.proveExport(ctx, src, model, f, &r)
	if err != nil {
		if errors.Is(err, bake.ErrTies) {
			return fmt.Errorf("%w: --allow-ties accepts them", err)
		}
		return err
	}
	if publish.IsCandidate(model) {
		model = publish.Checked(model, r.Parity)
	}
	p := &format.Package{Name: src.name, Model: model, Inputs: rows.inputs, Outputs: rows.outputs}
	if err := src.describe(p, f); err != nil {
		return err
	}
	if r.Models, r.Ratio, err = a.sizes(src, model, f, rows); err != nil {
		return err
	}
	if err := a.compareReturns(ctx, src, model, f, &r); err != nil {
		return err
	}
	r.Exceeded = f.decisions.exceeded(&r)
	if len(r.Exceeded) == 0 {
		if r.Files, err = form.Write(ctx, f.out, p); err != nil {
			return err
		}
	}
	if err := f.decisions.write(&r); err != nil {
		return err
	}
	var failed error
	if len(r.Exceeded) > 0 {
		failed = fmt.Errorf("nothing is written to %s: %s", f.out, strings.Join(r.Exceeded, "; "))
	}
	return a.printTable(&r, failed)
}

// mayWrite reports what is in the way of the files that are asked for.
func (s *exportSource) mayWrite(form format.Form, f *exportFlags) error {
	bind, err := f.bind.parse()
	if err == nil {
		err = checkSymbols(s.model, bind)
	}
	if err != nil {
		return err
	}
	if err := form.Free(f.out, s.name); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	for flag, out := range map[string]string{"--out": f.out, "--optimized": f.optimized} {
		if out != "" && s.path != "" && sameFile(out, s.path) {
			return fmt.Errorf("%s: %s is the model that is exported: choose another file", flag, out)
		}
	}
	return nil
}

// variant applies the options to the published model, which stays bit for bit what it is without
// any.
func (s *exportSource) variant(f *exportFlags) (*onnx.Model, error) {
	m := s.model
	var err error
	if f.sample {
		if m, err = s.sampling(m); err != nil {
			return nil, fmt.Errorf("--sample: %w", err)
		}
	}
	count := 0
	switch f.precision {
	case fp16Precision:
		m, count, err = bake.Float16(m)
	case int8Precision:
		full := m
		if m, count, err = bake.Int8(full); err == nil && count > 0 {
			err = smaller(full, m)
		}
	default:
		return m, nil
	}
	if err == nil && count == 0 {
		err = errors.New("the model has no weight that is large enough to keep in lower precision")
	}
	if err != nil {
		return nil, err
	}
	parent, err := s.digest()
	if err == nil {
		m.SetMeta(metaParent, parent)
	}
	return m, err
}

// smaller refuses a model of int8 weights that is larger than that of float16 ones: its nodes weigh
// more than what they save.
func smaller(full, quantised *onnx.Model) error {
	half, _, err := bake.Float16(full)
	if err != nil {
		return nil // then there is nothing to compare with
	}
	if _, have, err := sizeOf(quantised); err == nil {
		if _, want, err := sizeOf(half); err == nil && have > want {
			return fmt.Errorf("int8 would take %d bytes and fp16 takes %d: use --precision fp16", have, want)
		}
	}
	return nil
}

// sampling lets a model draw actions, by the probabilities of its choices or as its normal
// distribution has them.
func (s *exportSource) sampling(m *onnx.Model) (*onnx.Model, error) {
	if len(s.choices) > 0 && s.choices[0].Scores == agents.LogProbsOutput {
		return bake.Sample(m, s.choices[0])
	}
	normal := bake.Gaussian{Output: agents.ActionOutput, Mean: agents.MeanOutput, LogStd: agents.LogStdOutput}
	for _, name := range []string{normal.Mean, normal.LogStd} {
		if !slices.ContainsFunc(m.Graph.Output, func(v *onnx.ValueInfo) bool { return v.Name == name }) {
			return nil, fmt.Errorf("the policy is deterministic: the model says neither which output is a choice by log-probabilities, nor has it %s and %s of a normal distribution", normal.Mean, normal.LogStd)
		}
	}
	return bake.SampleGaussian(m, normal)
}

// describe fills in what the form oci keeps: everything of the version, or of what was made of it.
func (s *exportSource) describe(p *format.Package, f *exportFlags) error {
	p.Manifest = artifact.Manifest{Name: s.name, Kind: "model"}
	if task, ok := s.model.Meta(bake.MetaPrefix + "task"); ok {
		p.Manifest.Kind = task
	}
	if s.version == nil {
		return nil
	}
	p.Manifest = s.version.Manifest
	p.Manifest.Name = s.name
	var err error
	if p.Golden, err = s.version.Golden(); err != nil {
		return err
	}
	if p.Files, err = s.files(); err != nil {
		return err
	}
	if !f.changes() {
		return nil
	}
	// Another version: made of the first, with its own inputs and outputs.
	p.Manifest.Parents = []string{s.version.Digest}
	described := slices.Concat(p.Manifest.Inputs, p.Manifest.Outputs)
	p.Manifest.Inputs, p.Manifest.Outputs = artifact.PortsOf(p.Model)
	for _, ports := range [][]artifact.Port{p.Manifest.Inputs, p.Manifest.Outputs} {
		for i := range ports {
			if k := slices.IndexFunc(described, func(d artifact.Port) bool { return d.Name == ports[i].Name }); k >= 0 {
				ports[i].Bounds, ports[i].Description = described[k].Bounds, described[k].Description
			}
		}
	}
	p.Golden = &artifact.Golden{Inputs: head(p.Inputs, s.whole(goldenRows)), Outputs: head(p.Outputs, s.whole(goldenRows))}
	if f.precision == int8Precision {
		// A rounding of what comes before may move an activation to the next of its levels.
		p.Golden.Tolerance = int8Tolerance
	}
	return nil
}

// changes reports whether the model that is written is another one than the published.
func (f *exportFlags) changes() bool { return f.sample || f.precision != float32Precision }

// choicesOfModel are those that the metadata name, or the environment.
func choicesOfModel(m *onnx.Model, r *publish.Recording) ([]bake.Choice, error) {
	c, err := publish.Choices(m)
	if err != nil || len(c) > 0 || r == nil {
		return c, err
	}
	var outputs []string
	for _, v := range m.Graph.Output {
		outputs = append(outputs, v.Name)
	}
	return r.Choices(outputs), nil
}
