package shape

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// opCase is one node: inputs written as "float32[2,n]", with the content of small constants after
// "=" ("int64[2]=0,-1"), "" for an absent input, "seq " or "opt " before a type for other kinds.
// want lists the outputs in the same notation, contents included where they are to be known; err is
// part of the error.
type opCase struct {
	op    string
	opset int
	in    []string
	attrs []*onnx.Attribute
	want  []string
	err   string
}

// parseFact reads the notation of opCase.
func parseFact(s string) (Fact, error) {
	var f Fact
	if r, ok := strings.CutPrefix(s, "seq "); ok {
		f.Kind, s = Sequence, r
	} else if r, ok := strings.CutPrefix(s, "opt "); ok {
		f.Kind, s = Optional, r
	}
	s, elems, has := strings.Cut(s, "=")
	name, dims, ok := strings.Cut(strings.TrimSuffix(s, "]"), "[")
	if !ok {
		return f, fmt.Errorf("%q", s)
	}
	d, err := tensor.ParseDType(name)
	if err != nil {
		return f, err
	}
	f.Type.DType = d
	if dims == "..." {
		return f, nil
	}
	f.Type.Ranked = true
	for _, x := range strings.Split(dims, ",") {
		if x == "" {
			continue
		}
		if n, err := strconv.Atoi(x); err == nil {
			f.Type.Dims = append(f.Type.Dims, onnx.Known(n))
		} else {
			f.Type.Dims = append(f.Type.Dims, onnx.Symbol(strings.TrimSuffix(x, "?")))
		}
	}
	if !has {
		return f, nil
	}
	var parts []string
	if elems != "" {
		parts = strings.Split(elems, ",")
	}
	c := &content{dtype: d}
	shape, _ := f.Type.Static()
	c.shape = shape
	for _, p := range parts {
		if isFlt(d) {
			v, err := strconv.ParseFloat(p, 64)
			if err != nil {
				return f, err
			}
			c.flts = append(c.flts, v)
			continue
		}
		if n, err := strconv.ParseInt(p, 10, 64); err == nil {
			c.ints = append(c.ints, num(n))
		} else {
			c.ints = append(c.ints, val{sym: strings.TrimSuffix(p, "?")})
		}
	}
	for _, v := range c.ints {
		if !v.known {
			f.vals = c.ints
			return f, nil
		}
	}
	if isFlt(d) {
		f.Const = fltTensor(c)
	} else {
		f.Const = intTensor(c)
	}
	return f, nil
}

// printFact writes a fact in the notation of opCase.
func printFact(f Fact, withContent bool) string {
	s := f.Type.String()
	switch f.Kind {
	case Sequence:
		s = "seq " + s
	case Optional:
		s = "opt " + s
	}
	if !withContent {
		return s
	}
	var parts []string
	if f.Const != nil {
		c := contentOf(f.Const)
		if c == nil {
			return s
		}
		for _, v := range c.flts {
			parts = append(parts, strconv.FormatFloat(v, 'g', -1, 64))
		}
		parts = append(parts, texts(c.ints)...)
	} else if f.vals != nil {
		parts = texts(f.vals)
	} else {
		return s
	}
	return s + "=" + strings.Join(parts, ",")
}

func (tc *opCase) run() (*Env, *onnx.Node, error) {
	op, domain := tc.op, ""
	if i := strings.LastIndex(op, "."); i >= 0 {
		domain, op = op[:i], op[i+1:]
	}
	m := &onnx.Model{IrVersion: 8, Graph: &onnx.Graph{}, OpsetImport: []*onnx.OperatorSet{{Version: int64(tc.opset)}}}
	e, err := NewEnv(m, nil)
	if err != nil {
		return nil, nil, err
	}
	n := &onnx.Node{OpType: op, Domain: domain, Attribute: tc.attrs, Name: "case"}
	for i, s := range tc.in {
		if s == "" {
			n.Input = append(n.Input, "")
			continue
		}
		f, err := parseFact(s)
		if err != nil {
			return nil, nil, fmt.Errorf("input %d: %w", i, err)
		}
		name := "in" + strconv.Itoa(i)
		e.Set(onnx.Value(name), f)
		n.Input = append(n.Input, name)
	}
	for i := range max(len(tc.want), 1) {
		n.Output = append(n.Output, "out"+strconv.Itoa(i))
	}
	return e, n, e.Apply(n)
}

// runCases checks every case and that there are as many as the family's table is known to have.
func runCases(t *testing.T, want int, cases []opCase) {
	t.Helper()
	if len(cases) != want {
		t.Errorf("%d cases, want %d", len(cases), want)
	}
	for i, tc := range cases {
		e, n, err := tc.run()
		label := fmt.Sprintf("case %d: %s-%d %q", i, tc.op, tc.opset, tc.in)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want one with %q", label, err, tc.err)
			} else if !strings.Contains(err.Error(), `node "case"`) {
				t.Errorf("%s: error %v does not name the node", label, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", label, err)
			continue
		}
		for j, w := range tc.want {
			f, _ := e.Fact(n.Out(j))
			if got := printFact(f, strings.Contains(w, "=")); got != w {
				t.Errorf("%s: output %d is %s, want %s", label, j, got, w)
			}
		}
	}
}

func in(s ...string) []string { return s }

func out(s ...string) []string { return s }

func attrs(a ...*onnx.Attribute) []*onnx.Attribute { return a }

func ints(name string, v ...int) *onnx.Attribute { return onnx.AttrInts(name, v...) }

func i(name string, v int) *onnx.Attribute { return onnx.AttrInt(name, v) }

func str(name, v string) *onnx.Attribute { return onnx.AttrStr(name, v) }
