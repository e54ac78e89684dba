package ort

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// ModelError says that ONNX Runtime refused a model for another reason than an
// unknown operator or type: bytes that are no model, a graph that breaks the
// rules, types that do not fit.
type ModelError struct {
	// Node describes the node, empty where ONNX Runtime does not say which it is.
	Node string
	// Message is what ONNX Runtime said.
	Message string
}

func (e *ModelError) Error() string {
	if e.Node == "" {
		return "ort engine: invalid model: " + e.Message
	}
	return fmt.Sprintf("ort engine: invalid model: %s: %s", e.Node, e.Message)
}

// Forms of ONNX Runtime's messages that name an operator, a node or a value.
// Sessions are made through onnxruntime_go, which keeps the message of an error
// and drops its code.
var (
	reNoKernel = regexp.MustCompile(`Could not find an implementation for (\S+?)\(\d+\) node with name '([^']*)'`)
	reNoOp     = regexp.MustCompile(`No Op registered for (\S+)`)
	reNoSchema = regexp.MustCompile(`(?:([^\s:]*):)?(\S+?)\(-?\d+\) is not a registered function/op`)
	reRelease  = regexp.MustCompile(`Unsupported model IR version|only \*guarantees\* support for models stamped with official released onnx opset`)
	reInNode   = regexp.MustCompile(`In Node, \("([^"]+)"`)
	reNoType   = regexp.MustCompile(`Type Error: Type '[^']*' of (?:in|out)put parameter \([^)]*\) of operator \(([^)]+)\) in node \(([^)]*)\) is invalid`)
	reKernel   = regexp.MustCompile(`Failed to find kernel for (\S+?)\(\d+\) \(node:'([^']*)'`)
	reLocale   = regexp.MustCompile(`Failed to construct locale with name: ?([^: ]*)`)
	reBatch    = regexp.MustCompile(`Batchwise recurrent operations`)
	reNodeName = regexp.MustCompile(`(?:in node|Node) \(([^)]+)\)`)
	reGhost    = regexp.MustCompile(`Node input '([^']*)' is not a graph input`)
	reRunNode  = regexp.MustCompile(`(?s)while running (\S+) node\. Name:'([^']*)' Status Message: (.*)`)
)

// checkIndex is the index that the first check of a model's data gathers from a list of one element
// where it finds something; those of further checks follow.
const checkIndex = 7_046_029_254_386_353_131

// finding is what a check of data finds: the description of the node that it stands before, and the
// error.
type finding struct {
	node string
	err  error
}

// reIndex finds an index that ONNX Runtime refused.
var reIndex = regexp.MustCompile(`idx=(\d+) must be within`)

// reData finds what kernels say of indices, positions and lengths among the numbers of a run.
var reData = regexp.MustCompile(`indices element out of data bounds|Out of range value in index tensor|invalid (?:index|indice) found|Index value out of bounds|Invalid sequence index|` +
	`batch_indices value|Invalid value/s in sequence_lens|exceeds max_sequence_length`)

// reWhere is the place in ONNX Runtime's own source, with the signature of the function, that some
// messages start with.
var reWhere = regexp.MustCompile(`/onnxruntime_src/\S+:\d+ [^\n()]*\([^\n()]*\)(?: const)? `)

// compileError gives ONNX Runtime's refusal of m its type.
func compileError(m *onnx.Model, message string) error {
	message = reWhere.ReplaceAllString(message, "")
	unsupported := func(is func(*onnx.Node) bool, op, otherwise string) error {
		e := &engine.UnsupportedError{Engine: Name, Op: op, Node: otherwise, Reason: message}
		if n := find(m, is); n != nil {
			e.Node = n.Describe()
		}
		return e
	}
	name := ""
	for _, re := range []*regexp.Regexp{reInNode, reNodeName} {
		if g := re.FindStringSubmatch(message); g != nil && name == "" {
			name = g[1]
		}
	}
	// Models that break the specification's rules of types have been refused before (accept).
	for _, re := range []*regexp.Regexp{reNoKernel, reNoType, reKernel} {
		if g := re.FindStringSubmatch(message); g != nil {
			return unsupported(func(n *onnx.Node) bool { return n.Name == g[2] && n.OpType == g[1] }, g[1], "node "+g[1])
		}
	}
	if g := reLocale.FindStringSubmatch(message); g != nil {
		e := unsupported(func(n *onnx.Node) bool { return n.OpType == "StringNormalizer" }, "StringNormalizer", "node StringNormalizer").(*engine.UnsupportedError)
		e.Reason = fmt.Sprintf("this machine has no locale %q (Debian's package locales makes it)", g[1])
		return e
	}
	if reBatch.MatchString(message) {
		n := find(m, func(n *onnx.Node) bool { return n.Int("layout", 0) != 0 })
		if n != nil {
			return &engine.UnsupportedError{Engine: Name, Op: n.OpType, Node: n.Describe(), Reason: message}
		}
	}
	if g := reNoOp.FindStringSubmatch(message); g != nil {
		return unsupported(func(n *onnx.Node) bool { return n.Name == name && n.OpType == g[1] }, g[1], "node "+g[1])
	}
	if g := reNoSchema.FindStringSubmatch(message); g != nil {
		op := strings.TrimPrefix(g[1]+"."+g[2], ".")
		return unsupported(func(n *onnx.Node) bool {
			return n.OpType == g[2] && onnx.NormalizeDomain(n.Domain) == onnx.NormalizeDomain(g[1])
		}, op, "node "+op)
	}
	if reRelease.MatchString(message) {
		return &engine.UnsupportedError{Engine: Name, Node: "model", Reason: message}
	}
	e := &ModelError{Message: message}
	if g := reGhost.FindStringSubmatch(message); g != nil {
		if n := find(m, func(n *onnx.Node) bool { return slices.Contains(n.Input, g[1]) }); n != nil {
			e.Node = n.Describe()
		}
	} else if name != "" {
		e.Node = fmt.Sprintf("node %q", name)
		if n := find(m, func(n *onnx.Node) bool { return n.Name == name }); n != nil {
			e.Node = n.Describe()
		}
	}
	return e
}

// find returns the first node of the model or of its sub-graphs that satisfies
// is, or nil.
func find(m *onnx.Model, is func(*onnx.Node) bool) *onnx.Node {
	var found *onnx.Node
	stop := errors.New("found")
	// The only error is our own signal to stop.
	_ = m.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			if is(n) {
				found = n
				return stop
			}
		}
		return nil
	})
	return found
}

// runError names the node of a failed run where ONNX Runtime does. found is what the model's checks
// of data may have found.
func runError(err error, found []finding) error {
	if g := reIndex.FindStringSubmatch(err.Error()); g != nil && len(found) > 0 {
		if at, e := strconv.ParseInt(g[1], 10, 64); e == nil && at >= checkIndex && at-checkIndex < int64(len(found)) {
			f := found[at-checkIndex]
			return &engine.RunError{Engine: Name, Node: f.node, Err: f.err}
		}
	}
	g := reRunNode.FindStringSubmatch(err.Error())
	if g == nil {
		return &engine.RunError{Engine: Name, Err: err}
	}
	n := onnx.Node{OpType: g[1], Name: g[2]}
	message := reWhere.ReplaceAllString(g[3], "")
	err = errors.New(message)
	if reData.MatchString(message) {
		err = engine.DataError(message)
	}
	return &engine.RunError{Engine: Name, Node: n.Describe(), Err: err}
}
