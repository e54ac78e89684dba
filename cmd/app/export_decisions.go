package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Values of --precision.
const (
	float32Precision = "float32"
	fp16Precision    = "fp16"
	int8Precision    = "int8"
)

// metaParent is the metadata key of the digest of what a model of lower precision was made of: the
// version in its store, or the files.
const metaParent = bake.MetaPrefix + "parent"

// Files of a report on the decisions of a model of lower precision.
const (
	decisionsMarkdown = "parity.md"
	decisionsJSON     = "parity.json"
)

// decisionFlags say on what a model of lower precision is compared with the published one, and how
// much may change. Bounds are NaN where none is set.
type decisionFlags struct {
	observations, report             string
	episodes                         int
	changed, kl, action, returnBelow float64
}

// bounds are the flags of d by name.
func (d *decisionFlags) bounds() []struct {
	name, about string
	value       *float64
} {
	return []struct {
		name, about string
		value       *float64
	}{
		{"max-changed", "largest accepted share of choices that change", &d.changed},
		{"max-kl", "largest accepted mean divergence of the policy, in nats", &d.kl},
		{"max-action-delta", "largest accepted change of a continuous action, by the range of the action", &d.action},
		{"max-return-drop", "largest accepted loss of mean return, in the same episodes", &d.returnBelow},
	}
}

func (d *decisionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&d.observations, "observations", "", "with a lower --precision: compare decisions on the rows of this file, .npy for a model of one input or .npz with an array for each (default: those of the proof)")
	fl.StringVar(&d.report, "report", "", "with a lower --precision: folder of the report, "+decisionsMarkdown+" and "+decisionsJSON)
	fl.IntVar(&d.episodes, "episodes", 0, "with a lower --precision: episodes in which returns are compared (default: eval.episodes)")
	for _, b := range d.bounds() {
		*b.value = math.NaN()
		fl.Var((*boundValue)(b.value), b.name, "with a lower --precision: "+b.about+" (default: none)")
	}
}

// boundValue is a flag's bound, of at least 0; NaN is none.
type boundValue float64

func (b *boundValue) String() string {
	if b == nil || *b != *b {
		return ""
	}
	return fmt.Sprint(float64(*b))
}

func (b *boundValue) Set(text string) error {
	var x float64
	if _, err := fmt.Sscan(text, &x); err != nil || !(x >= 0) {
		return errors.New("expected a number of at least 0")
	}
	*b = boundValue(x)
	return nil
}

func (*boundValue) Type() string { return "float" }

// checkDecisions refuses a precision that is none, and flags that mean nothing with this one.
func (f *exportFlags) checkDecisions() error {
	if !slices.Contains([]string{float32Precision, fp16Precision, int8Precision}, f.precision) {
		return fmt.Errorf("--precision %s: expected %s, %s or %s", f.precision, float32Precision, fp16Precision, int8Precision)
	}
	d := &f.decisions
	if d.episodes < 0 {
		return fmt.Errorf("--episodes %d: expected at least 1", d.episodes)
	}
	if f.precision != float32Precision {
		return nil
	}
	given := ""
	for _, b := range d.bounds() {
		if *b.value == *b.value {
			given = b.name
		}
	}
	switch {
	case d.observations != "":
		given = "observations"
	case d.report != "":
		given = "report"
	case d.episodes != 0:
		given = "episodes"
	}
	if given != "" {
		return fmt.Errorf("--%s: it means nothing with --precision %s", given, float32Precision)
	}
	return nil
}

// digest is that of the published model: of the version, or of the file.
func (s *exportSource) digest() (string, error) {
	if s.version != nil {
		return s.version.Digest, nil
	}
	files, err := run.ModelFiles(s.path)
	if err != nil {
		return "", err
	}
	sum, err := run.Digest(files, nil)
	return "sha256:" + sum, err
}

// lossPolicy says what the model's outputs mean, as far as it, its manifest or its environment
// tells.
func (s *exportSource) lossPolicy() (bake.LossPolicy, error) {
	p := bake.LossPolicy{Choices: s.choices, LogProbs: agents.LogProbsOutput, Action: agents.ActionOutput}
	has := func(name string) bool {
		return slices.ContainsFunc(s.model.Graph.Output, func(v *onnx.ValueInfo) bool { return v.Name == name })
	}
	if has(agents.MeanOutput) && has(agents.LogStdOutput) {
		p.Gaussian = &bake.Gaussian{Output: agents.ActionOutput, Mean: agents.MeanOutput, LogStd: agents.LogStdOutput}
	}
	if s.opened.factory == nil {
		return p, nil
	}
	spec, err := offline.SpecOf(s.opened.factory, envs.Test, s.opened.cfg.Eval.MaxEpisodeSteps)
	if err != nil {
		return p, err
	}
	box, ok := spec.Action.(envs.Box)
	if !ok || !box.Bounded() {
		return p, nil
	}
	n := 1
	for _, d := range box.Dims {
		n *= d
	}
	for i := range n {
		r := box.Bounds(i)
		p.Low, p.High = append(p.Low, r.Low), append(p.High, r.High)
	}
	return p, nil
}

// compareReturns lets the published model and the one of lower precision act in the same episodes.
func (a *app) compareReturns(ctx context.Context, s *exportSource, model *onnx.Model, f *exportFlags, r *exportResult) error {
	if f.precision == float32Precision || s.opened.factory == nil {
		return nil
	}
	if f.sample {
		// Actors take the best action, and give no noise.
		plain := *f
		plain.sample = false
		var err error
		if model, err = s.variant(&plain); err != nil {
			return err
		}
	}
	cfg := s.opened.cfg
	n := cfg.Eval.Episodes
	if f.decisions.episodes > 0 {
		n = f.decisions.episodes
	}
	actors := func(m *onnx.Model) evaluate.Actors {
		return publish.ModelOf(ctx, m, s.engine, s.opened.factory, envs.Test)
	}
	p, err := evaluate.PairedEpisodes(ctx, s.opened.factory, envs.Test, actors(s.model), actors(model), n, cfg.Eval.MaxEpisodeSteps, rng.New(cfg.Seed).Split("evaluate"))
	if err != nil {
		return fmt.Errorf("compare returns: %w", err)
	}
	r.Return = &p
	return nil
}

// exceeded lists the bounds that a result does not keep, or says nothing about.
func (d *decisionFlags) exceeded(r *exportResult) []string {
	list := []string{}
	none := math.NaN()
	changed, kl, action, drop := none, none, none, none
	if l := r.Loss; l != nil {
		if l.Choices > 0 {
			changed = float64(l.Changed) / float64(l.Choices)
		}
		if l.KL != nil {
			kl = *l.KL
		}
		if l.MaxAction != nil {
			action = *l.MaxAction
		}
	}
	if r.Return != nil {
		drop = -r.Return.Difference
	}
	for i, b := range d.bounds() {
		have := []float64{changed, kl, action, drop}[i]
		lacks := []string{"the model makes no choices", "the model does not tell its distribution", "the model has no continuous action with bounds", "there is no environment"}[i]
		switch most := *b.value; {
		case most != most:
		case have != have:
			list = append(list, fmt.Sprintf("--%s %g: %s", b.name, most, lacks))
		case have > most:
			list = append(list, fmt.Sprintf("--%s %g: it is %.4g", b.name, most, have))
		}
	}
	return list
}

// lossLines tell of the decisions of a model that was changed, a line each; none of others.
func (r *exportResult) lossLines() (list []string) {
	l := r.Loss
	if l == nil {
		return nil
	}
	add := func(format string, v ...any) { list = append(list, fmt.Sprintf(format, v...)) }
	add("|Δ| at most %.2g, %.2g on average, over %d values; %d rows, %s", l.MaxDelta, l.MeanDelta, l.Values, l.Rows, r.Compared)
	if l.Choices > 0 {
		add("%d of %d choices differ (%.3g %%)", l.Changed, l.Choices, 100*float64(l.Changed)/float64(l.Choices))
	}
	if l.MaxAction != nil {
		add("actions differ by at most %.2g %% of their range, %.2g %% on average", 100**l.MaxAction, 100**l.MeanAction)
	}
	if l.KL != nil {
		add("KL of the policies %.2g nats on average, at most %.2g", *l.KL, *l.MaxKL)
	}
	if p := r.Return; p != nil {
		line := fmt.Sprintf("return %.6g and %.6g in lower precision: %+.4g", p.First, p.Second, p.Difference)
		if p.Low != nil {
			line += fmt.Sprintf(" (95 %% interval %+.4g to %+.4g)", *p.Low, *p.High)
		}
		add("%s over %s, of which %d differ", line, plural(p.Episodes, "episode"), p.Differing)
	}
	return list
}

// write writes the report where one is asked for.
func (d *decisionFlags) write(r *exportResult) error {
	if d.report == "" {
		return nil
	}
	var text bytes.Buffer
	if err := (jsonOutput{&text, "  "}).Encode(r); err != nil {
		return err
	}
	if err := os.MkdirAll(d.report, 0o755); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	if err := atomicfile.WriteBytes(filepath.Join(d.report, decisionsJSON), text.Bytes()); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	if err := atomicfile.WriteFile(filepath.Join(d.report, decisionsMarkdown), r.markdown); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// markdown writes the report for people.
func (r *exportResult) markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s in %s\n\nMade of %s, and compared with it by the engine %s.\n\n", r.Name, r.Precision, r.Source, r.Engine)
	for _, line := range r.lossLines() {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprint(&b, "\n| model | nodes | bytes | µs at batch 1 |\n|---|--:|--:|--:|\n")
	for _, m := range r.Models {
		micros := "–"
		if m.Micros != nil {
			micros = fmt.Sprintf("%.1f", *m.Micros)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", m.Name, m.Nodes, m.Bytes, micros)
	}
	fmt.Fprintf(&b, "\nA run takes %.2f × the time of the published model's, with one thread.\n", r.Ratio)
	if len(r.Exceeded) > 0 {
		fmt.Fprint(&b, "\nNothing was exported:\n\n")
		for _, line := range r.Exceeded {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
