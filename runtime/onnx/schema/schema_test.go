package schema

import (
	"testing"
)

func TestEveryEntryParses(t *testing.T) {
	versions, bodies := 0, 0
	for _, d := range Domains() {
		for _, name := range Names(d) {
			for _, v := range Versions(d, name) {
				o, ok := Lookup(d, name, v)
				if !ok || o.Since != v || o.Name != name || o.Domain != d {
					t.Fatalf("Lookup(%q, %q, %d) = %+v, %v", d, name, v, o, ok)
				}
				for _, p := range append(o.Inputs, o.Outputs...) {
					if len(o.Types[p.Type]) == 0 {
						t.Errorf("%s %d: parameter %s has no types", name, v, p.Name)
					}
				}
				for _, b := range o.BodyOpsets {
					if len(Body(d, name, max(b, v))) == 0 {
						t.Errorf("%s %d: the body for opset %d is missing", name, v, b)
					}
					bodies++
				}
				versions++
			}
		}
	}
	if versions != 659 || bodies != 43 || Release() != "1.23.2" {
		t.Errorf("the table of onnx %s has %d operator versions and %d bodies", Release(), versions, bodies)
	}
}

func TestLookup(t *testing.T) {
	cases := []struct {
		domain, op   string
		opset, since int // since 0: not found
	}{
		{"", "ReduceMean", 17, 13}, {"", "ReduceMean", 18, 18}, {"ai.onnx", "ReduceMean", 27, 18}, {"", "LayerNormalization", 16, 0},
		{"", "LayerNormalization", 17, 17}, {"", "Dropout", 12, 12}, {"ai.onnx.ml", "Scaler", 3, 1}, {"com.microsoft", "FusedMatMul", 1, 0}, {"", "reducemean", 18, 0},
	}
	for _, c := range cases {
		o, ok := Lookup(c.domain, c.op, c.opset)
		if ok != (c.since > 0) || ok && o.Since != c.since {
			t.Errorf("Lookup(%q, %q, %d) = %+v, %v; want since %d", c.domain, c.op, c.opset, o, ok, c.since)
		}
	}
}

func TestFields(t *testing.T) {
	o, _ := Lookup("", "Gemm", 18)
	a, ok := o.Attr("alpha")
	if !ok || a.Type != "FLOAT" || a.Default != 1.0 || a.Required {
		t.Errorf("Gemm's alpha is %+v, %v", a, ok)
	}
	if o.MinInputs != 2 || o.MaxInputs != 3 || o.Inputs[2].Option != Optional || o.Inputs[0].Differentiable != 1 {
		t.Errorf("Gemm's inputs are %+v", o)
	}
	o, _ = Lookup("", "Concat", 18)
	if p, ok := o.Input(7); !ok || p.Option != Variadic || o.MaxInputs != -1 {
		t.Errorf("Concat's eighth input is %+v, %v (at most %d)", p, ok, o.MaxInputs)
	}
	if a, _ := o.Attr("axis"); !a.Required {
		t.Error("Concat's axis is not required")
	}
	if o, _ := Lookup("", "RandomNormal", 18); !o.Nondeterministic {
		t.Error("RandomNormal is deterministic")
	}
	if o, _ := Lookup("", "Upsample", 18); !o.Deprecated {
		t.Error("Upsample is not deprecated")
	}
	if o, _ := Lookup("", "Softmax", 18); !o.ContextBody || len(o.BodyOpsets) != 0 {
		t.Errorf("Softmax's body: %+v", o)
	}
	if _, ok := o.Output(3); ok {
		t.Error("Concat has a fourth output")
	}
	if Latest("") < MaxUnderstood || Latest("com.microsoft") != 0 {
		t.Errorf("latest: %d, %d", Latest(""), Latest("com.microsoft"))
	}
	if Body("", "Gemm", 18) != nil || Body("", "Celu", 18) != nil || Body("", "HardSwish", 18) == nil {
		t.Error("the wrong operators have bodies")
	}
}

func BenchmarkLookup(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Lookup("", "Conv", 18); !ok {
			b.Fatal("no Conv")
		}
	}
}
