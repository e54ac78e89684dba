package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/engine/trace"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// loadModel reads a model and checks it. The error names the file and the first problem in one
// line.
func loadModel(path string) (*onnx.Model, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, err
	}
	r := onnx.CheckOptions{}.Check(m)
	if len(r.Problems) == 0 {
		return m, nil
	}
	more := ""
	if n := len(r.Problems) + r.Dropped - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more; 'onnxrl graph check' lists them)", n)
	}
	return nil, fmt.Errorf("%s: %w: %v%s", path, onnx.ErrInvalidModel, r.Problems[0], more)
}

// loadModel reads a model, checks it, and says which of its declared types are left out.
func (a *app) loadModel(path string) (*onnx.Model, error) {
	m, err := loadModel(path)
	if err == nil {
		a.noteDeclared(path, m)
	}
	return m, err
}

// noteDeclared says which types that a model declares for its own values contradict its nodes. What
// engines are given is without them.
func (a *app) noteDeclared(path string, m *onnx.Model) {
	inner := len(m.GetGraph().GetValueInfo()) > 0 || slices.ContainsFunc(m.GetGraph().GetNode(), func(n *onnx.Node) bool { return len(n.Subgraphs()) > 0 })
	if !inner && !slices.ContainsFunc(m.Functions, func(f *onnx.Function) bool { return len(f.ValueInfo) > 0 }) {
		return
	}
	// Where inference fails, whoever needs the types says why.
	if env, err := shape.Infer(m, nil); err == nil && env.Note() != "" {
		a.say("note: %s: %s", path, env.Note())
	}
}

// nanWeights returns an error naming the first initializer that holds a NaN.
func nanWeights(m *onnx.Model) error {
	for _, t := range m.GetGraph().GetInitializer() {
		if !tensor.DType(t.DataType).IsFloat() {
			continue
		}
		x, err := onnx.TensorOf(t)
		if err != nil {
			return fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		if r := trace.RangeOf(x); r.NaN > 0 {
			return fmt.Errorf("initializer %q: %d of %d elements are NaN, expected numbers", t.Name, r.NaN, x.Len())
		}
	}
	return nil
}

// sameFile reports whether two paths name one file that is there.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// bindFlags are the numbers that --bind gives to symbolic extents.
type bindFlags struct{ list []string }

func (b *bindFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&b.list, "bind", nil, "number of a symbolic extent, NAME=NUMBER")
}

func (b *bindFlags) parse() (map[string]int, error) {
	m := map[string]int{}
	for _, s := range b.list {
		name, value, ok := strings.Cut(s, "=")
		n, err := strconv.Atoi(value)
		if !ok || name == "" || err != nil || n < 0 {
			return nil, fmt.Errorf("--bind %q: expected NAME=NUMBER", s)
		}
		if old, twice := m[name]; twice && old != n {
			return nil, fmt.Errorf("--bind %s: given as %d and as %d", name, old, n)
		}
		m[name] = n
	}
	return m, nil
}

// checkSymbols refuses names that the model does not use, because they are spelling mistakes.
func checkSymbols(m *onnx.Model, bind map[string]int) error {
	known := onnx.Symbols(m)
	for name := range bind {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return fmt.Errorf("--bind %s: the model has no symbolic extents", name)
			}
			return fmt.Errorf("--bind %s: the model has no such extent; it has %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// batchName matches what exporters and people call the extent of the batch.
var batchName = regexp.MustCompile(`(?i)^(n|b|bs|.*batch.*)$`)

// batchOfOne gives the batch the number 1 where bind says nothing else. It returns the names that
// it added: of every input the symbolic extents that are called like a batch, or else the first
// extent when it is symbolic.
func batchOfOne(m *onnx.Model, bind map[string]int) (added []string) {
	for _, v := range m.GetGraph().Inputs() {
		t, _ := v.TensorType()
		var named []string
		for _, d := range t.Dims {
			if !d.IsKnown() && batchName.MatchString(d.Param) {
				named = append(named, d.Param)
			}
		}
		if len(named) == 0 && len(t.Dims) > 0 && !t.Dims[0].IsKnown() && t.Dims[0].Param != "" {
			named = []string{t.Dims[0].Param}
		}
		for _, name := range named {
			if _, ok := bind[name]; !ok {
				bind[name] = 1
				added = append(added, name)
			}
		}
	}
	return added
}

// withExtents returns m, or a copy in which extents of inputs that have neither a number nor a name
// have the number that extent returns; 0 leaves one as it is.
func withExtents(m *onnx.Model, extent func(input string, axis int) int) *onnx.Model {
	c := m.ShallowClone()
	changed := false
	for _, v := range c.Graph.Inputs() {
		t, ok := v.TensorType()
		if !ok {
			continue
		}
		for i, d := range t.Dims {
			if n := extent(v.Name, i); !d.IsKnown() && d.Param == "" && n > 0 {
				t.Dims[i], changed = onnx.Known(n), true
			}
		}
		v.Type = onnx.NewValueInfo("", t).Type
	}
	if !changed {
		return m
	}
	return c
}

// unbound returns an error naming the inputs' symbolic extents that have no number.
func unbound(m *onnx.Model, bind map[string]int) error {
	for _, v := range m.GetGraph().Inputs() {
		t, _ := v.TensorType()
		for _, d := range t.Dims {
			// An extent without a name cannot be given a number; gradients read it at run time.
			if _, ok := bind[d.Param]; d.IsKnown() || d.Param == "" || ok {
				continue
			}
			return fmt.Errorf("input %q (%v): extent %s has no number: give --bind %s=NUMBER", v.Name, t, d.Param, d.Param)
		}
	}
	return nil
}

// inferred returns the types of all values. Where they cannot be known, because the model is wrong
// or an operator foreign, a warning says why and the declared types take over.
func (a *app) inferred(path string, m *onnx.Model, bind map[string]int) (onnx.Types, error) {
	if m.GetGraph() == nil {
		return nil, fmt.Errorf("%s: the model has no graph", path)
	}
	if err := checkSymbols(m, bind); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	declared := onnx.DeclaredTypes(m.Graph)
	env, err := shape.NewEnv(m, bind)
	if err != nil {
		a.say("warning: %s: %s; types are those that the model declares", path, firstLine(err))
		return declared, nil
	}
	failed := 0
	for _, n := range m.Graph.Node {
		if e := env.Apply(n); e != nil {
			if failed++; failed == 1 {
				err = e
			}
		}
	}
	if note := env.Note(); note != "" {
		a.say("note: %s: %s", path, note)
	}
	if failed > 0 {
		a.say("warning: %s: the types of %d nodes are not known; the first: %s", path, failed, firstLine(err))
	}
	return func(v onnx.Value) (onnx.TensorType, bool) {
		if f, ok := env.Fact(v); ok && f.Kind == shape.Tensor && f.Type.DType != tensor.Undefined {
			return f.Type, true
		}
		return declared(v)
	}, nil
}

// writeTo writes a file atomically, or to the standard output when path is empty or "-".
func (a *app) writeTo(path string, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return write(a.out)
	}
	if err := atomicfile.WriteFile(path, write); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// portList prints the inputs or outputs of a graph.
func portList(list []*onnx.ValueInfo, types onnx.Types) []string {
	var out []string
	for _, v := range list {
		s := v.Name + " ?"
		if t, ok := types(onnx.Value(v.Name)); ok {
			s = v.Name + " " + t.String()
		}
		out = append(out, s)
	}
	return out
}

// plural prints a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

var errCheckFailed = errors.New("the check did not pass")
