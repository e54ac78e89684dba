package bake

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// share makes one of initializers with the same content, and of nodes that compute the same from
// the same, in a graph in order. Outputs keep their names. Nodes with sub-graphs and nodes that
// draw random numbers stay.
func share(g *onnx.Graph) error {
	public := map[string]bool{}
	for _, list := range [][]*onnx.ValueInfo{g.Input, g.Output} {
		for _, v := range list {
			public[v.Name] = true
		}
	}
	same, seen := map[string]string{}, map[[sha256.Size]byte][]string{}
	// known returns the values that a thing of the same content has made, or notes it.
	known := func(content string, values []string) []string {
		key := sha256.Sum256([]byte(content))
		if have, ok := seen[key]; ok {
			return have
		}
		seen[key] = values
		return nil
	}
	captured := map[string]bool{}
	for _, n := range g.Node {
		for _, v := range onnx.Captures(n) {
			captured[string(v)] = true
		}
	}
	var failed error
	g.Initializer = slices.DeleteFunc(g.Initializer, func(p *onnx.TensorProto) bool {
		if public[p.Name] || captured[p.Name] || failed != nil {
			return false
		}
		t, err := onnx.TensorOf(p)
		if err != nil {
			failed = err
			return false
		}
		if len(t.Bytes()) == 0 {
			return false // of strings, or empty
		}
		have := known(fmt.Sprintf("initializer %v %s", t, t.Bytes()), []string{p.Name})
		if have != nil {
			same[p.Name] = have[0]
		}
		return have != nil
	})
	if failed != nil {
		return failed
	}
	g.Node = slices.DeleteFunc(g.Node, func(n *onnx.Node) bool {
		for i, v := range n.Input {
			if to, ok := same[v]; ok {
				n.Input[i] = to
			}
		}
		if len(n.Subgraphs()) > 0 || strings.HasPrefix(n.OpType, "Random") || n.OpType == "Multinomial" || n.OpType == "Bernoulli" || n.OpType == "Dropout" ||
			slices.ContainsFunc(n.Output, func(v string) bool { return public[v] || captured[v] }) {
			return false
		}
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(&onnx.Node{OpType: n.OpType, Domain: n.Domain, Input: n.Input, Attribute: n.Attribute})
		if err != nil {
			failed = err
			return false
		}
		have := known(fmt.Sprintf("node %d %s", len(n.Output), text), n.Output)
		if have == nil {
			return false
		}
		for i, v := range n.Output {
			if v != "" && have[i] == "" {
				return false
			}
		}
		for i, v := range n.Output {
			same[v] = have[i]
		}
		return true
	})
	return failed
}
