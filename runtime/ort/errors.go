package ort

import (
	"fmt"
	"regexp"
	"strings"

	"onnxrl/runtime/engine"
)

// ModelError says that ONNX Runtime refused a model for another reason than an
// unknown operator or type: bytes that are no model, a graph that breaks the
// rules, types that do not fit.
type ModelError struct {
	// Node is the node's name, empty where ONNX Runtime does not say.
	Node string
	// Message is what ONNX Runtime said.
	Message string
}

func (e *ModelError) Error() string {
	if e.Node == "" {
		return "ort engine: invalid model: " + e.Message
	}
	return fmt.Sprintf("ort engine: invalid model: node %q: %s", e.Node, e.Message)
}

// Forms of ONNX Runtime's messages that name an operator or a node. Sessions are
// made through onnxruntime_go, which keeps the message of an error and drops its
// code.
var (
	reNoKernel = regexp.MustCompile(`Could not find an implementation for (\S+?)\((\d+)\) node with name '([^']*)'`)
	reNoSchema = regexp.MustCompile(`(?:No Op registered for (\S+)|(\S+) is not a registered function/op)`)
	reRelease  = regexp.MustCompile(`Unsupported model IR version|only \*guarantees\* support for models stamped with official released onnx opset|is under development and support for this is limited`)
	reInNode   = regexp.MustCompile(`In Node, \("([^"]*)", (\S+?), `)
	reNodeName = regexp.MustCompile(`[Nn]ode(?:\s+with name)?\s*[:(]\s*'?([^\s')]+)'?\)?`)
	reRunNode  = regexp.MustCompile(`(?s)while running (\S+) node\. Name:'([^']*)' Status Message: (.*)`)
)

// compileError gives the refusal of a model its type.
func compileError(message string) error {
	unsupported := func(op, node string) error {
		return &engine.UnsupportedError{Engine: Name, Op: op, Node: describe(op, node), Reason: message}
	}
	if m := reNoKernel.FindStringSubmatch(message); m != nil {
		return unsupported(m[1], m[3])
	}
	node := ""
	if m := reInNode.FindStringSubmatch(message); m != nil {
		node = m[1]
	}
	if m := reNoSchema.FindStringSubmatch(message); m != nil {
		return unsupported(strings.TrimSuffix(m[1]+m[2], ","), node)
	}
	if reRelease.MatchString(message) {
		return &engine.UnsupportedError{Engine: Name, Node: "model", Reason: message}
	}
	if m := reNodeName.FindStringSubmatch(message); node == "" && m != nil {
		node = m[1]
	}
	return &ModelError{Node: node, Message: message}
}

// runError names the node of a failed run where the message does.
func runError(err error) error {
	if m := reRunNode.FindStringSubmatch(err.Error()); m != nil {
		return &engine.RunError{Engine: Name, Node: describe(m[1], m[2]), Err: err}
	}
	return &engine.RunError{Engine: Name, Err: err}
}

// describe names a node like [onnx.NodeProto.Describe], as far as is known.
func describe(op, name string) string {
	if name == "" {
		return "node " + op
	}
	return fmt.Sprintf("node %q (%s)", name, op)
}
