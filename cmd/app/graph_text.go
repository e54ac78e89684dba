package app

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/engine/trace"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// loadTyped reads a model for looking at: it need not be valid.
func (a *app) loadTyped(path string, bind *bindFlags) (*onnx.Model, onnx.Types, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, nil, err
	}
	numbers, err := bind.parse()
	if err != nil {
		return nil, nil, err
	}
	types, err := a.inferred(path, m, numbers)
	return m, types, err
}

func (a *app) graphDumpCommand() *cobra.Command {
	var bind bindFlags
	var o onnx.PrintOptions
	cmd := &cobra.Command{
		Use:   "dump MODEL",
		Short: "Print a model as text, one node to a line",
		Long:  "Prints a model as text. The text depends on the model alone, so it serves golden files and diffs. Types are inferred. Large tensors show a digest of their bytes.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, types, err := a.loadTyped(args[0], &bind)
			if err != nil {
				return err
			}
			o.Types = types
			if a.json {
				return a.printJSON(map[string]string{"text": onnx.Sprint(m, o)})
			}
			return onnx.Fprint(a.out, m, o)
		},
	}
	bind.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&o.Names, "names", false, "print the names of nodes")
	fl.BoolVar(&o.Docs, "docs", false, "print documentation and the metadata of nodes")
	fl.IntVar(&o.MaxElements, "elements", 0, "how many elements of a tensor are printed before a digest takes their place (0: 8, negative: none)")
	return cmd
}

func (a *app) graphDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Show the differences between two models",
		Long: `Compares two models: versions, inputs, outputs, weights by content, and nodes, matched by the values they make. Names and order of nodes are not compared.
The exit status is 1 when something differs.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			x, err := onnx.Load(args[0])
			if err != nil {
				return err
			}
			y, err := onnx.Load(args[1])
			if err != nil {
				return err
			}
			d := onnx.Diff(x, y)
			if a.json {
				err = a.printJSON(d)
			} else if err = d.Fprint(a.out); err == nil {
				if d.Empty() {
					_, err = fmt.Fprintln(a.out, "no difference")
				} else {
					_, err = fmt.Fprintln(a.out, plural(d.Count(), "difference"))
				}
			}
			if err == nil && !d.Empty() {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
}

func (a *app) graphDotCommand() *cobra.Command {
	return a.pictureCommand("to-dot MODEL", "Write a graph for Graphviz", onnx.Dot)
}

func (a *app) graphSVGCommand() *cobra.Command {
	return a.pictureCommand("svg MODEL", "Draw a graph as an SVG picture", onnx.SVG)
}

func (a *app) pictureCommand(use, short string, draw func(io.Writer, *onnx.Model, onnx.Types) error) *cobra.Command {
	var bind bindFlags
	var out string
	var from, to []string
	cmd := &cobra.Command{
		Use:         use,
		Annotations: map[string]string{printsText: "a picture"},
		Short:       short,
		Long:        short + ". --from and --to cut a part out of a large one.",
		Args:        cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, types, err := a.loadTyped(args[0], &bind)
			if err != nil {
				return err
			}
			if m, err = part(m, from, to, types); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.writeTo(out, func(w io.Writer) error { return draw(w, m, types) })
		},
	}
	bind.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&out, "out", "o", "", "file to write (default: standard output)")
	fl.StringArrayVar(&from, "from", nil, "value that the part begins with (default: the inputs)")
	fl.StringArrayVar(&to, "to", nil, "value that the part ends with (default: the outputs)")
	return cmd
}

// part cuts what lies between values out of a model.
func part(m *onnx.Model, from, to []string, types onnx.Types) (*onnx.Model, error) {
	if len(from)+len(to) == 0 {
		return m, nil
	}
	var in, out []onnx.Value
	for _, v := range from {
		in = append(in, onnx.Value(v))
	}
	for _, v := range to {
		out = append(out, onnx.Value(v))
	}
	if len(in) == 0 {
		for _, v := range m.Graph.Inputs() {
			in = append(in, onnx.Value(v.Name))
		}
	}
	if len(out) == 0 {
		for _, v := range m.Graph.Output {
			out = append(out, onnx.Value(v.Name))
		}
	}
	return onnx.Extract(m, in, out, types)
}

// examineModel checks rules, types and weights.
func examineModel(m *onnx.Model, o onnx.CheckOptions) graphCheck {
	r := o.Check(m)
	c := graphCheck{Problems: []string{}, Dropped: r.Dropped, Unchecked: r.Unchecked}
	for _, p := range r.Problems {
		c.Problems = append(c.Problems, p.String())
	}
	// Inference would repeat what the rules have found.
	if len(c.Problems) == 0 {
		env, err := shape.Infer(m, nil)
		if err != nil {
			c.Problems = append(c.Problems, err.Error())
		} else {
			for _, n := range env.Contradictions() {
				c.Notes = append(c.Notes, n.String())
			}
		}
	}
	bound := bounds(m)
	for _, t := range m.GetGraph().GetInitializer() {
		if !tensor.DType(t.DataType).IsFloat() {
			continue
		}
		x, err := onnx.TensorOf(t)
		if err != nil {
			continue
		}
		if r := trace.RangeOf(x); r.NaN > 0 || r.NonFinite() > 0 && x.Len() > 1 && !bound[t.Name] {
			c.Problems = append(c.Problems, fmt.Sprintf("initializer %q: %v: expected finite numbers", t.Name, r))
		}
	}
	c.OK = len(c.Problems)+c.Dropped == 0
	return c
}

// bounds are the initializers that do nothing but limit or replace something, where infinity is a
// value like any other.
func bounds(m *onnx.Model) map[string]bool {
	limits := map[string]bool{}
	for _, n := range m.GetGraph().GetNode() {
		for _, in := range n.Input {
			before, seen := limits[in]
			limits[in] = (before || !seen) && (n.OpType == "Min" || n.OpType == "Max" || n.OpType == "Clip" || n.OpType == "Where")
		}
	}
	return limits
}

// joinSorted prints a map's entries in order of the keys.
func joinSorted[V any](m map[string]V, format string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf(format, k, m[k]))
	}
	return strings.Join(parts, ", ")
}

// count prints a large number with a decimal prefix.
func count(n int64) string { return scaled(n, 1000, "", []string{"k", "M", "G", "T", "P", "E"}) }

// byteSize prints a size with a binary prefix.
func byteSize(n int64) string {
	return scaled(n, 1024, " B", []string{" KiB", " MiB", " GiB", " TiB", " PiB", " EiB"})
}

func scaled(n int64, base float64, unit string, prefixes []string) string {
	v, i := float64(n), -1
	for v >= base && i < len(prefixes)-1 {
		v /= base
		i++
	}
	if i < 0 {
		return fmt.Sprintf("%d%s", n, unit)
	}
	digits := 2
	if v >= cmp.Or(base/10, 1) {
		digits = 0
	} else if v >= 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f%s", digits, v, prefixes[i])
}
