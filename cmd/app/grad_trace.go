package app

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine/trace"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// gradTrace is what onnxrl grad trace prints; the JSON keys are stable.
type gradTrace struct {
	Engine string `json:"engine"`
	trace.Report
	// ForwardNode is the forward node whose gradient the first value belongs to, when it belongs to
	// one.
	ForwardNode string `json:"forward_node,omitempty"`
	OK          bool   `json:"ok"`
}

func (a *app) gradTraceCommand() *cobra.Command {
	var f gradFlags
	var in inputFlags
	var backward, all, nan bool
	cmd := &cobra.Command{
		Use:   "trace MODEL [INPUT…]",
		Short: "Name the first value of a run that is not finite",
		Long: `Runs a model, with --grad its gradients too, and names the first value with a NaN or an infinity, the node that made it and the ranges of that node's inputs.
The exit status is 1 when there is one. Infinite constants, which masks are made with, do not count, nor do infinities that come from them; a NaN always does.

` + inputHelp,
		Example: `  onnxrl grad trace net.onnx x=batch.npy
  onnxrl grad trace net.onnx --grad --loss cross_entropy:logits --bind batch=8 --seed 3`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.loadModel(args[0])
			if err != nil {
				return err
			}
			feeds, err := in.feeds(m, args[1:]...)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			names := autodiff.Explain(m, nil, nil)
			if backward {
				if m, feeds, err = f.withGradient(m, feeds, &in); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				names = autodiff.Explain(m, nil, nil)
			}
			eng, err := a.foreign(cmd.Context(), a.engine)
			if err != nil {
				return err
			}
			var each func(trace.Visit, trace.Range)
			w := printable.NewTable(a.out)
			if all && !a.json {
				each = func(v trace.Visit, r trace.Range) {
					from := string(v.Source)
					if v.Node != nil {
						from = v.Node.OpType
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n", v.Value, from, r)
				}
			}
			rep, err := trace.FirstNonFinite(cmd.Context(), eng, m, feeds, trace.Options{}, each)
			w.Flush()
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if nan && rep.First != nil && rep.First.Range.NaN == 0 {
				rep.First, rep.FirstNaN = rep.FirstNaN, nil
			}
			t := gradTrace{Engine: eng.Name(), Report: rep, OK: rep.First == nil}
			if rep.First != nil {
				if o, ok := originOf(names, m, rep.First.Value); ok {
					t.ForwardNode = o.Forward
				}
			}
			if a.json {
				err = a.printJSON(t)
			} else {
				err = printTrace(a.out, t, nan)
			}
			if err == nil && !t.OK {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
	f.add(cmd)
	in.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&backward, "grad", false, "run the gradients too; --loss, --wrt, --freeze and --stop say which")
	fl.BoolVar(&all, "all", false, "print every value with its range")
	fl.BoolVar(&nan, "nan", false, "look for NaN only, not for infinities")
	return cmd
}

// withGradient differentiates m at the extents that the feeds have. Inputs that the losses add are
// drawn.
func (f *gradFlags) withGradient(m *onnx.Model, feeds map[string]*tensor.Tensor, in *inputFlags) (*onnx.Model, map[string]*tensor.Tensor, error) {
	bind, err := trace.Bind(m, feeds)
	if err != nil {
		return nil, nil, err
	}
	m = withExtents(m, func(input string, axis int) int { return feeds[input].Shape()[axis] })
	g, err := f.differentiate(m, bind)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range g.Model.Graph.Inputs() {
		if feeds[v.Name] == nil {
			if feeds[v.Name], err = makeInput(v, "", in.seed, bind); err != nil {
				return nil, nil, err
			}
		}
	}
	return g.Model, feeds, nil
}

// originOf tells which forward node's gradient a value belongs to.
func originOf(e *autodiff.Explanation, m *onnx.Model, v onnx.Value) (autodiff.Origin, bool) {
	n := onnx.NewIndex(m.Graph).Producer(v)
	if n == nil {
		return autodiff.Origin{}, false
	}
	name := n.Name
	if name == "" {
		name = string(n.Out(0))
	}
	o, ok := e.Origin(name)
	return o, ok && o.Forward != ""
}

func printTrace(w io.Writer, t gradTrace, nan bool) error {
	if len(t.InfiniteConstants) > 0 {
		fmt.Fprintf(w, "infinite constants: %v, and %s masked with them\n", t.InfiniteConstants, plural(len(t.Masks), "value"))
	}
	what := "not finite"
	if nan {
		what = "NaN"
	}
	if t.First == nil {
		_, err := fmt.Fprintf(w, "no value is %s: %d values on %s\n", what, t.Values, t.Engine)
		return err
	}
	fmt.Fprintf(w, "first value that is %s: %q\n", what, t.First.Value)
	printFinding(w, t.First)
	if t.ForwardNode != "" {
		fmt.Fprintf(w, "  it belongs to the gradient of %q\n", t.ForwardNode)
	}
	if t.FirstNaN != nil {
		fmt.Fprintf(w, "first NaN: %q\n", t.FirstNaN.Value)
		printFinding(w, t.FirstNaN)
	}
	return nil
}

func printFinding(w io.Writer, f *trace.Finding) {
	if f.Node != "" {
		fmt.Fprintf(w, "  made by %s\n", f.Node)
	} else {
		fmt.Fprintf(w, "  an %s of the model\n", f.Source)
	}
	fmt.Fprintf(w, "  value   %s\n", f.Range)
	printOperands(w, f.Inputs)
}

func printOperands(w io.Writer, list []trace.Operand) {
	for _, in := range list {
		r := "not looked at"
		if in.Range != nil {
			r = in.Range.String()
		}
		fmt.Fprintf(w, "  input   %q: %s\n", in.Value, r)
	}
}
