package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/trace"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// comparison is what onnxrl compare prints; the JSON keys are stable.
type comparison struct {
	Engines   []string           `json:"engines"`
	Tolerance float64            `json:"tolerance"`
	Absolute  float64            `json:"absolute_tolerance"`
	Outputs   []trace.Difference `json:"outputs"`
	// First is the first computed value that differs, looked for only when an output does; Agreed
	// counts the values before it.
	First  *trace.Difference `json:"first,omitempty"`
	Agreed int               `json:"agreed,omitempty"`
	OK     bool              `json:"ok"`
}

func (c comparison) tolerance() trace.Tolerance {
	return trace.Tolerance{Rel: c.Tolerance, Abs: c.Absolute}
}

func (a *app) compareCommand() *cobra.Command {
	var in inputFlags
	var names []string
	var tol trace.Tolerance
	var f gradFlags
	var backward bool
	var limits runLimits
	cmd := &cobra.Command{
		Use:   "compare MODEL [INPUT…]",
		Short: "Run a model on two engines and find where they differ",
		Long: `Runs a model on two engines and compares its outputs. When one differs, every value on the way is compared too, and the first that differs is named with its node.
Floating-point values agree when max|a-b| <= --atol + --tol·max|a|; integers and text must be equal. The error printed is max|a-b| / (1e-6 + max|a|).
A model whose loops do not end, or fill the memory, is stopped by --timeout and --max-memory.
The exit status is 1 when an output differs.

` + inputHelp,
		Example: `  onnxrl compare net.onnx --engines ort,portable --bind batch=4`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(names) != 2 {
				return fmt.Errorf("--engines %s: expected two of %s, separated by a comma", strings.Join(names, ","), strings.Join(engineNames(), ", "))
			}
			for _, name := range names {
				if name != "auto" && !slices.Contains(engineNames(), name) {
					return fmt.Errorf("--engines: %q is none of auto, %s", name, strings.Join(engineNames(), ", "))
				}
			}
			if !(tol.Rel >= 0 && tol.Abs >= 0) {
				return fmt.Errorf("--tol %g and --atol %g: expected numbers that are not negative", tol.Rel, tol.Abs)
			}
			m, err := a.loadModel(args[0])
			if err != nil {
				return err
			}
			// NaN equals NaN in a comparison, so NaN weights would make everything equal.
			if err := nanWeights(m); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			feeds, err := in.feeds(m, args[1:]...)
			if err == nil && len(args) == 1 && len(in.inputs) == 0 && empty(feeds) {
				err = errors.New("every input is empty, so nothing would be compared: give --bind numbers above 0")
			}
			if err == nil && backward {
				m, feeds, err = f.withGradient(m, feeds, &in)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			var c comparison
			err = limits.within(cmd.Context(), func(ctx context.Context) (err error) {
				var engines [2]engine.Compiler
				for i, name := range names {
					if engines[i], err = a.foreign(ctx, name); err != nil {
						return err
					}
				}
				c, err = compareEngines(ctx, engines, m, feeds, tol)
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if a.json {
				err = a.printJSON(c)
			} else {
				err = a.printComparison(c)
			}
			if err == nil && !c.OK {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
	in.add(cmd)
	f.add(cmd)
	limits.add(cmd)
	fl := cmd.Flags()
	fl.StringSliceVar(&names, "engines", engineNames(), "the two engines; the first is the reference")
	fl.Float64Var(&tol.Rel, "tol", trace.DefaultTolerance.Rel, "relative part of the tolerance")
	fl.Float64Var(&tol.Abs, "atol", trace.DefaultTolerance.Abs, "absolute part of the tolerance")
	fl.BoolVar(&backward, "grad", false, "compare the gradients too; --loss, --wrt, --freeze and --stop say which")
	return cmd
}

func compareEngines(ctx context.Context, engines [2]engine.Compiler, m *onnx.Model, feeds map[string]*tensor.Tensor, tol trace.Tolerance) (comparison, error) {
	c := comparison{Engines: []string{engines[0].Name(), engines[1].Name()}, Tolerance: tol.Rel, Absolute: tol.Abs, OK: true}
	outs, err := trace.Outputs(ctx, engines[0], engines[1], m, feeds, trace.Options{})
	if err != nil {
		return c, err
	}
	c.Outputs = outs
	for _, d := range outs {
		c.OK = c.OK && d.Within(tol)
	}
	if !c.OK {
		c.First, c.Agreed, err = trace.Compare(ctx, engines[0], engines[1], m, feeds, tol, trace.Options{})
	}
	return c, err
}

// empty reports whether there are inputs and none of them has an element.
func empty(feeds map[string]*tensor.Tensor) bool {
	for _, t := range feeds {
		if t.Len() > 0 {
			return false
		}
	}
	return len(feeds) > 0
}

func (a *app) printComparison(c comparison) error {
	for _, d := range c.Outputs {
		status := "ok"
		if !d.Within(c.tolerance()) {
			status = "DIFFERS"
		}
		fmt.Fprintf(a.out, "output %q: %s  %s\n", d.Value, d, status)
	}
	if c.OK {
		_, err := fmt.Fprintf(a.out, "%s and %s agree on %s\n", c.Engines[0], c.Engines[1], plural(len(c.Outputs), "output"))
		return err
	}
	if c.First == nil {
		_, err := fmt.Fprintf(a.out, "no value differs when all %d are looked at: the difference comes from what the engines fuse, or from random numbers in the graph\n", c.Agreed)
		return err
	}
	fmt.Fprintf(a.out, "first value that differs, after %d that agree: %q\n  made by %s\n  %s\n", c.Agreed, c.First.Value, c.First.Node, c.First)
	printOperands(a.out, c.First.Inputs)
	return nil
}
