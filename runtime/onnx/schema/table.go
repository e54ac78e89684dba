package schema

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed schemas.txt.gz
var schemasFile []byte

//go:embed bodies.txt.gz
var bodiesFile []byte

// MinUnderstood and MaxUnderstood bound the opset versions of the standard domain that this program
// differentiates and executes. Models of any version are read, printed and, as far as the table
// reaches, checked.
const (
	MinUnderstood = 13
	MaxUnderstood = 27
)

type key struct{ domain, name string }

// entry is one version of an operator, parsed when first asked for.
type entry struct {
	since int
	text  string
	once  sync.Once
	op    *Operator
}

type table struct {
	release string
	types   [][]string
	ops     map[key][]*entry // by since, ascending
	domains map[string]int   // domain -> latest version
}

var load = sync.OnceValue(func() *table {
	lines := strings.Split(strings.TrimSuffix(string(unzip(schemasFile)), "\n"), "\n")
	t := &table{ops: make(map[key][]*entry, 300), domains: map[string]int{}}
	var head struct {
		Onnx  string
		Types [][]string
	}
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil {
		panic(fmt.Sprintf("schema: embedded table: %v", err))
	}
	t.release, t.types = head.Onnx, head.Types
	for _, l := range lines[1:] {
		f := strings.SplitN(l, "\t", 4)
		since, err := strconv.Atoi(f[2])
		if err != nil {
			panic(fmt.Sprintf("schema: embedded table: %v", err))
		}
		k := key{f[0], f[1]}
		t.ops[k] = append(t.ops[k], &entry{since: since, text: f[3]})
		t.domains[k.domain] = max(t.domains[k.domain], since)
	}
	return t
})

// The embedded files are written by our own generator and covered by a test, so damage is a bug of
// the build and panics.
func unzip(b []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		panic(fmt.Sprintf("schema: embedded table: %v", err))
	}
	out, err := io.ReadAll(r)
	if err != nil {
		panic(fmt.Sprintf("schema: embedded table: %v", err))
	}
	return out
}

func domainOf(d string) string {
	if d == "ai.onnx" {
		return ""
	}
	return d
}

// Release is the onnx release that the table was generated from.
func Release() string { return load().release }

// Domains returns the domains that the table covers.
func Domains() []string {
	var out []string
	for d := range load().domains {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// Latest returns the newest opset version of a domain that the table knows an operator of, or 0
// when it does not cover the domain.
func Latest(domain string) int { return load().domains[domainOf(domain)] }

// Names returns the operators of a domain in alphabetical order, also those deprecated since.
func Names(domain string) []string {
	var out []string
	for k := range load().ops {
		if k.domain == domainOf(domain) {
			out = append(out, k.name)
		}
	}
	slices.Sort(out)
	return out
}

// Lookup returns the version of an operator that is in force at an opset version: the newest not
// newer than it. ok is false when the table has none. The result is shared and must not be changed.
func Lookup(domain, op string, opset int) (o *Operator, ok bool) {
	k := key{domainOf(domain), op}
	list := load().ops[k]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].since <= opset {
			return list[i].parse(k), true
		}
	}
	return nil, false
}

// Versions returns the opset versions at which an operator was introduced or changed, ascending, or
// nil when the table does not know it.
func Versions(domain, op string) []int {
	var out []int
	for _, e := range load().ops[key{domainOf(domain), op}] {
		out = append(out, e.since)
	}
	return out
}

func (e *entry) parse(k key) *Operator {
	e.once.Do(func() {
		o := &Operator{Domain: k.domain, Name: k.name, Since: e.since}
		var flags int
		var arity [4]int
		var in, out []jsonParam
		var types map[string]int
		var attrs []jsonAttr
		record := []any{&flags, &arity, &in, &out, &types, &attrs, &o.BodyOpsets}
		if err := json.Unmarshal([]byte(e.text), &record); err != nil {
			panic(fmt.Sprintf("schema: embedded table: %s: %v", k.name, err))
		}
		o.Deprecated, o.Nondeterministic, o.ContextBody, o.Experimental = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
		o.MinInputs, o.MaxInputs, o.MinOutputs, o.MaxOutputs = arity[0], arity[1], arity[2], arity[3]
		for _, p := range in {
			o.Inputs = append(o.Inputs, Param(p))
		}
		for _, p := range out {
			o.Outputs = append(o.Outputs, Param(p))
		}
		o.Types = make(map[string][]string, len(types))
		for name, i := range types {
			o.Types[name] = load().types[i]
		}
		for _, a := range attrs {
			o.Attributes = append(o.Attributes, Attr(a))
		}
		e.op = o
		e.text = ""
	})
	return e.op
}

type jsonParam Param

// UnmarshalJSON reads [name, type, option, heterogeneous, min_arity, differentiable].
func (p *jsonParam) UnmarshalJSON(b []byte) error {
	var het, diff int
	if err := json.Unmarshal(b, &[]any{&p.Name, &p.Type, &p.Option, &het, &p.MinArity, &diff}); err != nil {
		return err
	}
	p.Heterogeneous = het != 0
	p.Differentiable = [...]int{0, 1, -1}[diff]
	return nil
}

type jsonAttr Attr

// UnmarshalJSON reads [name, type, required, default].
func (a *jsonAttr) UnmarshalJSON(b []byte) error {
	var required int
	if err := json.Unmarshal(b, &[]any{&a.Name, &a.Type, &required, &a.Default}); err != nil {
		return err
	}
	a.Required = required != 0
	return nil
}

type bodyKey struct {
	domain, name string
	since, opset int
}

var loadBodies = sync.OnceValue(func() map[bodyKey]string {
	out := map[bodyKey]string{}
	for l := range strings.Lines(string(unzip(bodiesFile))) {
		f := strings.Split(strings.TrimSuffix(l, "\n"), "\t")
		since, err1 := strconv.Atoi(f[2])
		opset, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil {
			panic(fmt.Sprintf("schema: embedded bodies: %q", l))
		}
		out[bodyKey{f[0], f[1], since, opset}] = f[4]
	}
	return out
})

// Body returns the encoded FunctionProto by which the standard defines an operator at an opset
// version, nil when it gives none that holds for every node. The body is the newest one written for
// an opset not above the given one; when all are newer, the oldest, whose own opset import then
// says which version it needs. onnx.SchemaBody decodes it.
func Body(domain, op string, opset int) []byte {
	o, ok := Lookup(domain, op, opset)
	if !ok || len(o.BodyOpsets) == 0 {
		return nil
	}
	best := o.BodyOpsets[0]
	for _, v := range o.BodyOpsets {
		if v <= opset {
			best = v
		}
	}
	b, err := base64.StdEncoding.DecodeString(loadBodies()[bodyKey{o.Domain, o.Name, o.Since, best}])
	if err != nil {
		panic(fmt.Sprintf("schema: embedded bodies: %s: %v", op, err))
	}
	return b
}
