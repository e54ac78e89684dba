package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/glob"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func (a *app) graphExplainCommand() *cobra.Command {
	var f gradFlags
	var bind bindFlags
	var of string
	var only []string
	var verbose bool
	cmd := &cobra.Command{
		Use:   "explain MODEL",
		Short: "Which forward node produced which gradient nodes",
		Long: `Lists the forward nodes with the gradient nodes that each produced and the operations of both. MODEL is a gradient model; any other is differentiated first, as --loss, --wrt,
--freeze, --stop and --bind say. --of names the model that a gradient model was made from, so that operators that were expanded into several are shown as one.`,
		Example: `  onnxrl graph explain policy.onnx --bind batch=64
  onnxrl graph explain policy_grad.onnx --of policy.onnx --node '*/fc1/*' --verbose`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := a.explanation(args[0], of, &f, &bind)
			if err != nil {
				return err
			}
			if len(only) > 0 {
				var kept []autodiff.Line
				for _, l := range e.Forward {
					if glob.MatchAny(only, l.Node) {
						kept = append(kept, l)
					}
				}
				if len(kept) == 0 {
					return fmt.Errorf("%s: no node is called %s", args[0], strings.Join(only, " or "))
				}
				e.Forward, e.Seeds, e.Sums, e.Lost = kept, []string{}, []string{}, nil
			}
			if a.json {
				return a.printJSON(e)
			}
			return printExplanation(a.out, e, verbose)
		},
	}
	f.add(cmd)
	bind.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&of, "of", "", "the model that the gradient model was made from")
	fl.StringArrayVar(&only, "node", nil, "pattern of the forward nodes to show")
	fl.BoolVarP(&verbose, "verbose", "v", false, "print every gradient node")
	return cmd
}

// explanation explains a gradient model, or the gradient of a model.
func (a *app) explanation(path, of string, f *gradFlags, bind *bindFlags) (*autodiff.Explanation, error) {
	m, err := a.loadModel(path)
	if err != nil {
		return nil, err
	}
	numbers, err := bind.parse()
	if err != nil {
		return nil, err
	}
	var original *onnx.Model
	if of != "" {
		if original, err = loadModel(of); err != nil {
			return nil, err
		}
	}
	if of != "" || isGradient(m) {
		types, err := a.inferred(path, m, numbers)
		if err != nil {
			return nil, err
		}
		return autodiff.Explain(m, original, types), nil
	}
	if err := checkSymbols(m, numbers); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	g, err := f.differentiate(m, numbers)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return autodiff.Explain(g.Model, m, func(v onnx.Value) (onnx.TensorType, bool) {
		t := g.Env.Type(v)
		return t, t.DType != tensor.Undefined
	}), nil
}

// isGradient reports whether a model has gradient outputs.
func isGradient(m *onnx.Model) bool { return autodiff.Order(m) > 0 }

func printExplanation(out io.Writer, e *autodiff.Explanation, verbose bool) error {
	w := printable.NewTable(out)
	fmt.Fprintln(w, "forward node\toperator\toperations\tgradient nodes\toperations\tgradient operators")
	nodes := 0
	var forward, backward int64
	for _, l := range e.Forward {
		op := l.Op
		if l.Expanded > 0 {
			op += fmt.Sprintf(" (%s)", plural(l.Expanded, "node"))
		}
		grads, cost := "", ""
		if len(l.Gradients) > 0 {
			grads, cost = fmt.Sprint(len(l.Gradients)), count(l.GradientFLOPs)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", printable.Name(l.Node), printable.Name(op), count(l.ForwardFLOPs), grads, cost, summary(l.GradientOps))
		nodes, forward, backward = nodes+len(l.Gradients), forward+l.ForwardFLOPs, backward+l.GradientFLOPs
		if verbose {
			for i, g := range l.Gradients {
				fmt.Fprintf(w, "  %s\t%s\t\t\t\t\n", printable.Name(g), l.GradientOps[i])
			}
		}
	}
	for _, o := range []struct {
		what  string
		names []string
	}{{"(starts of the backward pass)", e.Seeds}, {"(sums over uses of a value)", e.Sums}, {"(forward nodes that are gone)", e.Lost}} {
		if len(o.names) > 0 {
			nodes += len(o.names)
			fmt.Fprintf(w, "%s\t\t\t%d\t\t\n", o.what, len(o.names))
		}
	}
	fmt.Fprintf(w, "%s\t\t%s\t%d\t%s\t\n", plural(len(e.Forward), "node"), count(forward), nodes, count(backward))
	return w.Flush()
}

// summary prints operators in order of first use, with counts.
func summary(ops []string) string {
	n := map[string]int{}
	var order []string
	for _, op := range ops {
		if n[op]++; n[op] == 1 {
			order = append(order, op)
		}
	}
	for i, op := range order {
		if n[op] > 1 {
			order[i] = fmt.Sprintf("%d %s", n[op], op)
		}
	}
	return strings.Join(order, ", ")
}
