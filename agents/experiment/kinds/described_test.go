package kinds_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/configs"
)

// TestKindsAreDescribed demands of every kind a line that says what it is, and that the defaults it
// gives are those that it decodes over.
func TestKindsAreDescribed(t *testing.T) {
	all := kinds.All()
	seen := map[string]bool{}
	check := func(list, name, summary string, defaults func() any) any {
		t.Helper()
		if summary == "" || strings.ContainsAny(summary, "\n\t") || len(summary) > 160 {
			t.Errorf("%s %s: the summary is %q, expected one line", list, name, summary)
		}
		if seen[list+summary] {
			t.Errorf("%s %s: the summary is another's", list, name)
		}
		seen[list+summary] = true
		if defaults == nil {
			t.Fatalf("%s %s gives no defaults", list, name)
		}
		d := defaults()
		if reflect.TypeOf(d).Kind() != reflect.Struct {
			t.Errorf("%s %s: the defaults are %T, expected a struct", list, name, d)
		}
		return d
	}
	same := func(list, name string, want, have any, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s %s: %v", list, name, err)
		} else if changes, err := configs.Diff(want, have); err != nil || len(changes) > 0 {
			t.Errorf("%s %s decodes over other defaults than it gives: %v %v", list, name, changes, err)
		}
	}
	opened := 0
	for _, k := range all.Envs {
		d := check("env", k.Name, k.Summary, k.Defaults)
		f, err := k.Open(t.Context(), configs.Section{})
		if k.Needs != "" {
			if err == nil {
				t.Errorf("env %s opens without %s", k.Name, k.Needs)
			}
			continue
		}
		if err != nil {
			t.Fatal(k.Name, err)
		}
		opened++
		same("env", k.Name, d, f.Config(), f.Close())
	}
	for _, k := range all.Agents {
		d := check("algo", k.Name, k.Summary, k.Defaults)
		m, err := k.Parse(configs.Section{})
		if err != nil {
			t.Fatal(k.Name, err)
		}
		same("algo", k.Name, d, m.Config(), nil)
	}
	for _, k := range all.Encoders {
		d := check("encoder", k.Name, k.Summary, k.Defaults)
		if k.Name == "file" { // which has to be named
			continue
		}
		e, err := k.New(configs.Section{})
		if err != nil {
			t.Fatal(k.Name, err)
		}
		same("encoder", k.Name, d, e.Config(), nil)
	}
	if opened < 8 {
		t.Errorf("%d environments opened", opened)
	}
}
