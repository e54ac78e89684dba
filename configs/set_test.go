package configs

import (
	"strings"
	"testing"
)

func TestSetEditsTheDocument(t *testing.T) {
	doc, err := Parse("run.yaml", []byte("a: {b: 1}\nlist: [1, 2]\nnothing:\n"))
	if err != nil {
		t.Fatal(err)
	}
	original := doc.Clone()
	err = doc.Set("a.b=2.5", "a.c.d=text", "list[0]=[x, y]", "list[2]=3", `s="7"`, "nothing.k=true", `a["x.y"]=null`, "empty=", "list[0][1]=0x10")
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.SetValue("layer", layer{Width: 3}); err != nil {
		t.Fatal(err)
	}
	want := `a:
  b: 2.5
  c:
    d: text
  "x.y": null
list:
  - [x, 0x10]
  - 2
  - 3
nothing:
  k: true
s: "7"
empty: null
layer:
  width: 3
  activation: ""
`
	// x.y needs no quotes: it is a plain word.
	want = strings.Replace(want, `"x.y"`, "x.y", 1)
	if got := string(doc.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := string(original.Bytes()); got != "a:\n  b: 1\nlist: [1, 2]\nnothing: null\n" {
		t.Errorf("the clone changed:\n%s", got)
	}
	if s, ok := doc.Lookup("list[0]"); !ok || s.IsScalar() || s.Path() != "list[0]" {
		t.Errorf("lookup: %v %v", s, ok)
	}
	if _, ok := doc.Lookup("list[9]"); ok {
		t.Error("lookup of an absent element succeeded")
	}
}

func TestSetRefuses(t *testing.T) {
	cases := []struct{ assignment, want string }{
		{"novalue", "expected path=value"},
		{"=3", "expected path=value"},
		{"a..b=3", "empty key"},
		{".a=3", "empty key"},
		{"a.=3", "empty key"},
		{"a[x]=3", `"x" is not an index`},
		{"a[1=3", "missing ]"},
		{"list[5]=3", "index 5 is beyond the 2 elements of list"},
		{"other[0]=3", "other is absent in the document and not a list"},
		{"scalar.x=3", `scalar is an integer 3, which has no key "x"`},
		{"a=[1", "syntax"},
		{"a=!!x 1", "tag !!x is not supported"},
	}
	refused := 0
	for _, c := range cases {
		doc, err := Parse("run.yaml", []byte("list: [1, 2]\nscalar: 3"))
		if err != nil {
			t.Fatal(err)
		}
		err = doc.Set(c.assignment)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "--set "+c.assignment) {
			t.Errorf("%s: error %v, want %q", c.assignment, err, c.want)
			continue
		}
		refused++
	}
	if refused != 12 {
		t.Errorf("%d of 12 assignments refused as they should be", refused)
	}
}

func TestSetTakesTextAsItIs(t *testing.T) {
	doc, err := Parse("run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	// YAML has other uses for a first character of %, @ or `.
	checked := 0
	for _, want := range []string{"%d.%m.%Y", "@home", "`x`", `%"\`} {
		var got string
		if err := doc.Set("a.format=" + want); err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		s, _ := doc.Lookup("a.format")
		if err := s.Decode(&got); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		checked++
	}
	if checked != 4 {
		t.Errorf("%d of 4 checked", checked)
	}
}

func TestSetErrorsNameTheFlag(t *testing.T) {
	doc, err := Parse("run.yaml", []byte("gamma: 0.9"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Set("gama=0.8", "gamma=high", "layers=[{width: 1, activation: relu}]", "layers[0].width=-3"); err != nil {
		t.Fatal(err)
	}
	e := defaults()
	err = doc.Decode(&e)
	want := `--set gamma=high: gamma: expected a number, found the string "high"
--set gama=0.8: gama: unknown key "gama"; did you mean "gamma"?
--set layers[0].width=-3: layers[0].width: must be positive, is -3`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	doc2, _ := Parse("run.yaml", nil)
	if err := doc2.Set("layers=[{width: 1, activation: relu}]", "layers[0].width=-3"); err != nil {
		t.Fatal(err)
	}
	err = doc2.Decode(&e)
	if err == nil || err.Error() != "--set layers[0].width=-3: layers[0].width: must be positive, is -3" {
		t.Errorf("validation: %v", err)
	}
}
