package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func (a *app) gradCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "grad", Short: "Build, check and trace gradients"}
	cmd.AddCommand(a.gradOpsCommand(), a.gradCheckCommand(), a.gradBuildCommand(), a.gradTraceCommand())
	return cmd
}

// gradFlags say what is differentiated.
type gradFlags struct {
	losses, wrt, freeze, stop []string
	cotangents, dropOutputs   bool
}

func (f *gradFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.losses, "loss", nil, "value whose elements are summed up, VALUE or VALUE=WEIGHT, or KIND:OUTPUT with a KIND of "+strings.Join(losses(), ", ")+" (default: all floating-point outputs)")
	fl.StringArrayVar(&f.wrt, "wrt", nil, "pattern of initializers and inputs, or name of an inner value, to differentiate with respect to (default: all floating-point initializers, or inputs when there are none)")
	fl.StringArrayVar(&f.freeze, "freeze", nil, "pattern of values that are not differentiated even when --wrt matches them")
	fl.StringArrayVar(&f.stop, "stop", nil, "value that no gradient flows through")
}

// losses lists the kinds of losses that need nothing but an output.
func losses() []string {
	return slices.DeleteFunc(slices.Clone(loss.Kinds()), func(k string) bool { return k == "onnx" })
}

// differentiate applies the flags to a checked model whose inputs are bound by bind.
func (f *gradFlags) differentiate(m *onnx.Model, bind map[string]int) (*autodiff.Gradient, error) {
	var obj autodiff.Objective
	m, err := f.objective(m, &obj)
	if err != nil {
		return nil, err
	}
	if err := unbound(m, bind); err != nil {
		return nil, err
	}
	return autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{obj}, Bind: bind, DropOutputs: f.dropOutputs})
}

// objective fills in what is differentiated; it returns the model with supervised losses attached.
func (f *gradFlags) objective(m *onnx.Model, obj *autodiff.Objective) (*onnx.Model, error) {
	obj.Wrt, obj.Freeze, obj.Stop = slices.Clone(f.wrt), f.freeze, f.stop
	if len(f.wrt) == 0 {
		obj.Wrt = differentiable(m)
		if len(obj.Wrt) == 0 {
			return nil, fmt.Errorf("the model has no floating-point initializers and inputs: say what to differentiate with respect to with --wrt")
		}
	}
	var terms []loss.Term
	for _, s := range f.losses {
		if kind, output, ok := strings.Cut(s, ":"); ok && slices.Contains(losses(), kind) {
			terms = append(terms, loss.Term{Output: output, Kind: kind})
			continue
		}
		l := autodiff.Loss{Value: s}
		// Values may have an equals sign in their name; what follows the last one is a weight only
		// if it is a number.
		if i := strings.LastIndexByte(s, '='); i > 0 {
			if w, err := strconv.ParseFloat(s[i+1:], 64); err == nil {
				l.Value, l.Weight = s[:i], w
				if w == 0 {
					return nil, fmt.Errorf("--loss %s: a weight of 0 leaves nothing to differentiate", s)
				}
			}
		}
		obj.Losses = append(obj.Losses, l)
	}
	if len(terms) > 0 {
		with, _, err := loss.Attach(m, terms)
		if err != nil {
			return nil, err
		}
		m = with
		obj.Losses = append(obj.Losses, autodiff.Loss{Value: loss.Output})
	}
	if len(f.losses) == 0 {
		types := onnx.DeclaredTypes(m.Graph)
		for _, v := range m.Graph.Output {
			if t, ok := types(onnx.Value(v.Name)); ok && t.DType.IsFloat() {
				obj.Losses = append(obj.Losses, autodiff.Loss{Value: v.Name})
			}
		}
	}
	if f.cotangents {
		for i := range obj.Losses {
			obj.Losses[i].Cotangent = "cotangent/" + obj.Losses[i].Value
		}
	}
	return m, nil
}

// differentiable lists a model's parameters, or its inputs when it has none.
func differentiable(m *onnx.Model) []string {
	g := m.Graph
	var names []string
	for _, t := range g.Initializer {
		if !autodiff.IsConstant(m, t.Name) && tensor.DType(t.DataType).IsFloat() {
			names = append(names, t.Name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, v := range g.Inputs() {
		if t, ok := v.TensorType(); ok && t.DType.IsFloat() {
			names = append(names, v.Name)
		}
	}
	return names
}

// gradBuild is what onnxrl grad build prints; the JSON keys are stable.
type gradBuild struct {
	Out           string          `json:"out"`
	ForwardNodes  int             `json:"forward_nodes"`
	GradientNodes int             `json:"gradient_nodes"`
	Inputs        []string        `json:"inputs"`
	Outputs       []string        `json:"outputs"`
	Gradients     []gradientEntry `json:"gradients"`
}

type gradientEntry struct {
	Wrt    string `json:"wrt"`
	Output string `json:"output"`
	Type   string `json:"type"`
	// Unreached marks a value that no loss depends on.
	Unreached bool `json:"unreached,omitempty"`
}

func (a *app) gradBuildCommand() *cobra.Command {
	var f gradFlags
	var bind bindFlags
	var out string
	cmd := &cobra.Command{
		Use:   "build MODEL -o OUT",
		Short: "Write a model that computes the gradients of another",
		Long: `Writes a model that computes what MODEL computes and, in outputs called grad/NAME, the gradients of a loss. It consists of standard operators and runs anywhere.
Give numbers to the symbolic extents of inputs with --bind; a batch without a number is 1. Shapes that depend on the data are read when the gradient runs.
A MODEL that holds gradients gives those of the second order, in outputs called grad2/NAME: with --loss grad/NAME --cotangents, products of the Hessian and a vector.`,
		Example: `  onnxrl grad build policy.onnx --bind batch=64 -o policy_grad.onnx
  onnxrl grad build net.onnx --loss mse:y --wrt '*.weight' --freeze 'encoder.*' --bind batch=32 -o step.onnx
  onnxrl grad build critic.onnx --loss q --wrt action --bind batch=256 -o dq_da.onnx
  onnxrl grad build step.onnx --loss grad/fc1.weight --cotangents -o hessian_vector.onnx`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := a.loadModel(args[0])
			if err != nil {
				return err
			}
			if err := nanWeights(m); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			numbers, err := bind.parse()
			if err != nil {
				return err
			}
			if err := checkSymbols(m, numbers); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, name := range batchOfOne(m, numbers) {
				if !a.quiet {
					a.say("%s is 1: --bind %s=NUMBER makes it another number", name, name)
				}
			}
			m = withExtents(m, func(_ string, axis int) int { return max(0, 1-axis) })
			g, err := f.differentiate(m, numbers)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if err := onnx.Check(g.Model); err != nil {
				return fmt.Errorf("the gradient of %s: %w", args[0], err)
			}
			if err := onnx.Save(out, g.Model, onnx.SaveOptions{}); err != nil {
				return err
			}
			return a.printGradBuild(built(out, m, g))
		},
	}
	f.add(cmd)
	bind.add(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&out, "out", "o", "", "ONNX file to write")
	fl.BoolVar(&f.cotangents, "cotangents", false, "take the gradient of each loss value from an input called cotangent/VALUE instead of ones")
	fl.BoolVar(&f.dropOutputs, "drop-outputs", false, "leave out the model's own outputs that are no losses")
	if err := cmd.MarkFlagRequired("out"); err != nil {
		panic(err)
	}
	return cmd
}

func built(out string, m *onnx.Model, g *autodiff.Gradient) gradBuild {
	types := func(v onnx.Value) (onnx.TensorType, bool) { return g.Env.Type(v), true }
	b := gradBuild{Out: out, ForwardNodes: len(m.Graph.Node), Inputs: portList(g.Model.Graph.Inputs(), types), Outputs: portList(g.Model.Graph.Output, types), Gradients: []gradientEntry{}}
	b.GradientNodes = len(g.Model.Graph.Node) - len(m.Graph.Node)
	for _, list := range g.Outputs {
		for _, o := range list {
			b.Gradients = append(b.Gradients, gradientEntry{Wrt: o.Wrt, Output: o.Name, Type: g.Env.Type(onnx.Value(o.Name)).String(), Unreached: o.Unreached})
		}
	}
	return b
}

func (a *app) printGradBuild(b gradBuild) error {
	if a.json {
		return a.printJSON(b)
	}
	w := printable.NewTable(a.out)
	for _, g := range b.Gradients {
		note := ""
		if g.Unreached {
			note = "zeros: no loss depends on it"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", g.Output, g.Type, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.out, "written %s: %d forward nodes and %d for gradients of %s\n", b.Out, b.ForwardNodes, b.GradientNodes, plural(len(b.Gradients), "value"))
	return err
}
