// Package onnx is a typed, mutable view of ONNX models.
//
// The messages ([Model], [Graph], [Node], …) are the ones generated from the ONNX project's own
// protobuf definition, so nothing a file carries is lost between decoding and encoding: unknown
// fields, training information and metadata survive. This package adds methods to them and, beside
// them:
//
//   - files: [Load], [Open] (mapped from disk), [Save], [Unmarshal], [Marshal]; tensors alone by
//     [ReadTensor] and [WriteTensor]
//   - tensors: [TensorOf] and [ProtoOf] convert between TensorProto and tensor.Tensor; [Densify]
//     and [ConstantsToInitializers] give weights one form
//   - construction: [Builder]
//   - types of values: [TensorType] with symbolic [Dim]s; what each value's type is, is found by
//     the sub-package shape
//   - faults: [Check], against the table of operators in the sub-package schema
//   - rewriting: [InlineFunctions], [InlineBody], [Expand], [Prune], [Rename], [Prefix], [Compose],
//     [Extract], [InitializersToInputs], [InputsToInitializers], [BindDims], [Fold], [Upgrade],
//     [Sort]
//   - questions: [NewIndex] (producers and consumers), [Reads] and [Captures] (what a node needs,
//     sub-graphs included), [NewTopology] (a graph of gonum)
//   - looking: [Fprint], [Diff], [NewStats], [FLOPs], [Dot], [SVG]
//
// # Values, graphs and scopes
//
// A graph's values are named by strings; [Value] is that name. The empty Value is an absent
// optional input or output, as in ONNX itself. A sub-graph sees the values of the graphs around it:
// who asks what a node needs must count what its sub-graphs capture, so ask [Reads] and not the
// list of inputs.
//
// # Who shares what
//
// Rewrites take a model and return another; the argument is never changed. The new model's
// structure is its own and its weights are shared with the old one ([Model.ShallowClone]), so a
// chain of rewrites costs no copies of weights. Weights must not be changed in place while two
// models share them. [Unmarshal] makes raw data alias the bytes it was given, [Open] makes it alias
// the file.
//
// # How to add a rewrite
//
// Write one file with one exported function from *[Model] to (*[Model], error). Start from
// ShallowClone; walk sub-graphs with [Model.EachGraph]; take names for new values from a namer
// (names.go) and new nodes from a [Builder] where there are many; drop what became dead with
// [Prune]. Errors say what was attempted and name the node or value. Test it by the one-line form
// of graphs (brief in surgery_test.go), check that the argument is unchanged, and add the function
// to exercise in fuzz_test.go, which runs it over damaged models.
//
// To take a new release of ONNX, regenerate onnx.pb.go (go generate) and the table of package
// schema. TestEveryChangeIsDecided then lists the operators that changed, and each is either the
// same, or gets a rule in upgrade_rules.go, or is refused.
package onnx

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go_opt=Monnx.proto=github.com/onnxrl/onnxrl/runtime/onnx onnx.proto
