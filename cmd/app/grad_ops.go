package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// ortLacks lists the differentiable operators of the specification that ONNX Runtime's training,
// frozen at release 1.20, had no gradient for.
var ortLacks = []string{
	"Acos", "Acosh", "Asin", "Asinh", "Atanh", "CastLike", "CausalConvWithState", "Celu", "CenterCropPad", "Col2Im", "Compress", "Cosh", "CumProd", "CumSum",
	"DepthToSpace", "Det", "Einsum", "Elu", "GlobalLpPool", "GridSample", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "InstanceNormalization", "LRN",
	"LinearAttention", "LpNormalization", "LpPool", "MaxRoiPool", "MaxUnpool", "Mean", "MeanVarianceNormalization", "Mish", "Mod", "NegativeLogLikelihoodLoss", "PRelu",
	"RNN", "ReduceL1", "ReduceLogSum", "ReduceMin", "ReduceProd", "ReduceSumSquare", "Selu", "Shrink", "Sinh", "Softplus", "Softsign", "SpaceToDepth", "Sum", "Swish",
	"Tan", "TensorScatter", "ThresholdedRelu",
}

// gradOps is what onnxrl grad ops prints; the JSON keys are stable.
type gradOps struct {
	// Specified counts the operators that the ONNX specification marks as differentiable; Covered
	// those that have a rule and enough cases, all of which pass if Verified.
	Specified   int      `json:"specified"`
	Covered     int      `json:"covered"`
	ORTTraining int      `json:"ort_training"`
	Verified    bool     `json:"verified"`
	Engines     []string `json:"engines,omitempty"`
	Comparisons int      `json:"comparisons,omitempty"`
	Failed      []string `json:"failed,omitempty"`
	Missing     string   `json:"missing_engine,omitempty"`
	// Operators are those of the specification's list, Beyond the others that have cases.
	Operators []gradOp `json:"operators"`
	Beyond    []gradOp `json:"beyond"`
}

type gradOp struct {
	Op          string `json:"op"`
	Rule        string `json:"rule"`
	Since       int    `json:"since_opset,omitempty"`
	ORTTraining bool   `json:"ort_training"`
	Cases       int    `json:"cases"`
	Covered     bool   `json:"covered"`
	// Checks has one entry per engine after verification.
	Checks []gradOpCheck `json:"checks,omitempty"`
}

type gradOpCheck struct {
	Engine      string         `json:"engine"`
	Passed      int            `json:"passed"`
	Cases       int            `json:"cases"`
	Comparisons int            `json:"comparisons"`
	MaxError    *float64       `json:"max_error"`
	Levels      map[string]int `json:"levels"`
	Error       string         `json:"error,omitempty"`
}

func (a *app) gradOpsCommand() *cobra.Command {
	var verify bool
	cmd := &cobra.Command{
		Use:   "ops [OPERATOR…]",
		Short: "Which operators can be differentiated",
		Long: `Lists the operators that the ONNX specification marks as differentiable with the rule for each. That is a rule of its own, an expansion into operators that have rules, or zero for piecewise
constant ones. An operator counts when it has a rule and at least ` + fmt.Sprint(opcases.MinCases) + ` cases; --verify runs the cases on both engines, comparing gradients with finite differences, and counts only
operators whose every case passes on both. The exit status is then 1 when a case fails or an engine is missing. With --engine, only that engine is verified.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := coverageTable(args)
			if err != nil {
				return err
			}
			if verify {
				if err := a.verifyOps(cmd, &t, args); err != nil {
					return err
				}
			}
			if a.json {
				err = a.printJSON(t)
			} else {
				err = a.printGradOps(t)
			}
			if err == nil && verify && (len(t.Failed) > 0 || t.Missing != "") {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "run every case on both engines against finite differences")
	return cmd
}

func opName(domain, op string) string {
	if domain == onnx.DomainStandard {
		return op
	}
	return domain + "." + op
}

// coverageTable is the table without any check. only restricts it to some operators.
func coverageTable(only []string) (gradOps, error) {
	cases, rules := map[string]int{}, map[string]autodiff.OpCoverage{}
	var order []string
	for _, c := range opcases.All() {
		name := opName(c.Domain, c.Op)
		if cases[name] == 0 {
			order = append(order, name)
			rules[name] = autodiff.CoverageOf(c.Domain, c.Op)
		}
		cases[name]++
	}
	wanted := func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }
	t := gradOps{Operators: []gradOp{}, Beyond: []gradOp{}}
	listed := map[string]bool{}
	for _, c := range autodiff.Coverage() {
		listed[c.Op] = true
		if !wanted(c.Op) {
			continue
		}
		g := gradOp{Op: c.Op, Rule: c.Kind.String(), Since: c.Since, ORTTraining: !slices.Contains(ortLacks, c.Op), Cases: cases[c.Op]}
		g.Covered = c.Kind != autodiff.NoRule && g.Cases >= opcases.MinCases
		t.Operators = append(t.Operators, g)
	}
	slices.Sort(order)
	for _, name := range order {
		if !listed[name] && wanted(name) {
			t.Beyond = append(t.Beyond, gradOp{Op: name, Rule: rules[name].Kind.String(), Since: rules[name].Since, Cases: cases[name], Covered: cases[name] >= opcases.MinCases})
		}
	}
	for _, name := range only {
		if !listed[name] && cases[name] == 0 {
			return t, fmt.Errorf("grad ops: operator %q is neither in the specification's list nor among the cases", name)
		}
	}
	t.count()
	return t, nil
}

func (t *gradOps) count() {
	t.Specified, t.Covered, t.ORTTraining = len(t.Operators), 0, 0
	for _, g := range t.Operators {
		if g.Covered {
			t.Covered++
		}
		if g.ORTTraining {
			t.ORTTraining++
		}
	}
}

// verifyOps runs the cases of every operator in the table and lets count only what passes.
func (a *app) verifyOps(cmd *cobra.Command, t *gradOps, only []string) error {
	names := []string{ort.Name, portable.Name}
	if cmd.Flags().Changed("engine") && a.engine != "auto" {
		names = []string{a.engine}
	}
	var engines []engine.Compiler
	for _, name := range names {
		c, err := a.namedEngine(cmd.Context(), name)
		if err != nil && errors.Is(err, ort.ErrUnavailable) {
			t.Missing = name
			a.say("ONNX Runtime is not available, so the rules are not verified on it; 'onnxrl doctor' says what to do (%s)", firstLine(err))
			continue
		}
		if err != nil {
			return err
		}
		engines, t.Engines = append(engines, c), append(t.Engines, name)
	}
	var rows []*gradOp
	for _, list := range [][]gradOp{t.Operators, t.Beyond} {
		for i := range list {
			if list[i].Cases > 0 {
				rows = append(rows, &list[i])
			}
		}
	}
	bar := progress.Start(a.err, progress.Options{Label: "verify", Unit: "operators", Total: int64(len(rows) * len(engines)), Quiet: a.quiet})
	defer bar.Finish()
	for _, g := range rows {
		for _, c := range engines {
			k, err := checkOp(cmd.Context(), c, g.Op)
			if err != nil {
				return err
			}
			g.Checks = append(g.Checks, k)
			g.Covered = g.Covered && k.Error == "" && k.Passed >= opcases.MinCases
			t.Comparisons += k.Comparisons
			if k.Error != "" {
				t.Failed = append(t.Failed, g.Op+" ("+k.Engine+")")
			}
			bar.Add(1)
		}
	}
	t.Verified = t.Missing == ""
	t.count()
	return nil
}

// checkOp verifies one operator on one engine.
func checkOp(ctx context.Context, c engine.Compiler, name string) (gradOpCheck, error) {
	k := gradOpCheck{Engine: c.Name(), Levels: map[string]int{}}
	res, err := opcases.Verify(ctx, c, func(k opcases.Case) bool { return opName(k.Domain, k.Op) == name })
	if err != nil {
		return k, err
	}
	for _, r := range res {
		k.Passed, k.Cases, k.Comparisons, k.MaxError, k.Levels = r.Passed, r.Cases, r.Comparisons, finite(r.MaxError), r.Levels
		switch {
		case r.Err != nil:
			k.Error = r.Err.Error()
		case r.Comparisons == 0:
			k.Error = "nothing was compared"
		}
	}
	return k, nil
}

func (a *app) printGradOps(t gradOps) error {
	w := printable.NewTable(a.out)
	head := "operator\trule\tsince\tORT training\tcases"
	for _, e := range t.Engines {
		head += "\t" + e + " comparisons\tmax error"
	}
	fmt.Fprintln(w, head+"\tcounts")
	rows := func(list []gradOp, listed bool) {
		for _, g := range list {
			since, trained, counts := fmt.Sprint(g.Since), "no", "no"
			if g.ORTTraining {
				trained = "yes"
			}
			if g.Since == 0 {
				since = ""
			}
			if !listed {
				trained = ""
			}
			if g.Covered {
				counts = "yes"
			}
			line := fmt.Sprintf("%s\t%s\t%s\t%s\t%d", g.Op, g.Rule, since, trained, g.Cases)
			for i := range t.Engines {
				if i < len(g.Checks) {
					k := g.Checks[i]
					mark := ""
					if k.Error != "" {
						mark = " FAIL"
					}
					line += fmt.Sprintf("\t%d%s\t%s", k.Comparisons, mark, number(k.MaxError))
				} else {
					line += "\t\t"
				}
			}
			fmt.Fprintln(w, line+"\t"+counts)
		}
	}
	rows(t.Operators, true)
	if len(t.Beyond) > 0 {
		fmt.Fprintln(w, "beyond the specification's list")
		rows(t.Beyond, false)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, list := range [][]gradOp{t.Operators, t.Beyond} {
		for _, g := range list {
			for _, k := range g.Checks {
				if k.Error != "" {
					fmt.Fprintf(a.out, "%s on %s: %s\n", g.Op, k.Engine, strings.ReplaceAll(k.Error, "\n", "\n    "))
				}
			}
		}
	}
	var how string
	switch {
	case len(t.Failed) > 0:
		how = fmt.Sprintf("%d checks failed", len(t.Failed))
	case t.Missing != "":
		how = fmt.Sprintf("verified with %d comparisons on %s only: %s is not available", t.Comparisons, strings.Join(t.Engines, " and "), t.Missing)
	case t.Verified:
		how = fmt.Sprintf("verified with %d comparisons on %s", t.Comparisons, strings.Join(t.Engines, " and "))
	default:
		how = "not verified on this machine; --verify does"
	}
	_, err := fmt.Fprintf(a.out, "%d/%d differentiable operators covered (ONNX Runtime training: %d), %s\n", t.Covered, t.Specified, t.ORTTraining, how)
	return err
}
