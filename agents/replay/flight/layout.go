package flight

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// elements are the types of columns by their Arrow names.
var elements = map[arrow.Type]tensor.DType{
	arrow.FLOAT32: tensor.Float32, arrow.FLOAT64: tensor.Float64, arrow.INT8: tensor.Int8, arrow.INT16: tensor.Int16, arrow.INT32: tensor.Int32, arrow.INT64: tensor.Int64,
	arrow.UINT8: tensor.Uint8, arrow.UINT16: tensor.Uint16, arrow.UINT32: tensor.Uint32, arrow.UINT64: tensor.Uint64,
}

// The columns of rows that are inserted, beside obs.NAME.
const (
	obsPrefix  = "obs."
	nextPrefix = "next."
)

// layoutOf returns the layout of transitions whose rows have a schema.
func layoutOf(schema *arrow.Schema) (l replay.Layout, err error) {
	if n := schema.NumFields(); n > MaxColumns {
		return l, invalid("the schema has %d columns, expected at most %d", n, MaxColumns)
	}
	seen, row := map[string]bool{}, 0
	for _, f := range schema.Fields() {
		if seen[f.Name] {
			return l, invalid("the schema has two columns %q", f.Name)
		}
		seen[f.Name] = true
		c := replay.Column{Name: strings.TrimPrefix(f.Name, obsPrefix)}
		t := f.Type
		if list, ok := t.(*arrow.FixedSizeListType); ok {
			t, c.Shape = list.Elem(), []int{int(list.Len())}
		}
		var ok bool
		if c.DType, ok = elements[t.ID()]; !ok {
			return l, invalid("the column %q is %v, expected a number, or a list of a fixed number of them", f.Name, f.Type)
		}
		n := 1
		if c.Shape != nil {
			n = c.Shape[0]
		}
		if n < 0 || n > MaxRow {
			return l, invalid("the column %q is %v, of lists of %d numbers", f.Name, f.Type, n)
		}
		if row += c.DType.ByteLen(n); row > MaxRow {
			return l, invalid("a row is more than %d bytes, with the columns up to %q", MaxRow, f.Name)
		}
		number := func(to *int, want tensor.DType) error {
			if len(c.Shape) != 1 || c.DType != want {
				return invalid("the column %q is %v, expected a list of a fixed number of %v", f.Name, f.Type, want)
			}
			*to = c.Shape[0]
			return nil
		}
		switch name := f.Name; {
		case strings.HasPrefix(name, obsPrefix):
			l.Obs = append(l.Obs, c)
		case name == "mask":
			err = number(&l.Mask, tensor.Uint8)
		case name == "action":
			l.Action = c
		case name == "reward" || name == "discount" || name == "log_prob":
			l.LogProb = l.LogProb || name == "log_prob"
			if c.DType != tensor.Float32 || c.Shape != nil {
				err = invalid("the column %q is %v, expected float", name, f.Type)
			}
		case name == "logits":
			err = number(&l.Logits, tensor.Float32)
		case name == "skill":
			l.Skill = &c
		case name == "cost":
			err = number(&l.Costs, tensor.Float32)
		case name != "env" && name != "kind":
			err = invalid("the column %q is none of obs.NAME, mask, action, reward, discount, log_prob, logits, skill, cost, env and kind", name)
		}
		if err != nil {
			return l, err
		}
	}
	for _, name := range []string{"action", "reward", "discount", "kind"} {
		if !seen[name] {
			return l, invalid("the schema has no column %q: %v", name, schema)
		}
	}
	if len(l.Obs) == 0 {
		return l, invalid("the schema has no column obs.NAME: %v", schema)
	}
	return l, nil
}
