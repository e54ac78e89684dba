// Package portable is the engine in pure Go: no shared library, any platform, CGO_ENABLED=0. It is
// also the second opinion that ONNX Runtime is compared with.
//
// # How a model gets in
//
// Models are decoded by owulveryck/onnx-go, through its Backend interface. That decoder serves a
// subset of ONNX, so a model is first lowered to it, and what comes out is raised again:
//
//   - Model functions, and operators that the standard defines in terms of others and that have no
//     kernel here, are inlined.
//   - The lowered graph has no element types, shapes or weights: the decoder narrows or refuses
//     many types, panics on boolean initializers, and would copy the rest. Our vertices are not
//     onnx-go DataCarriers, so it asks for none; weights keep their names in the lowered graph and
//     their data where it was.
//   - Inputs arrive as weighted edges, the weight being the position, one call per occurrence,
//     directly before the operation is applied. The backend (recorder) keeps them in order of
//     arrival instead of in a simple graph, so repeated inputs survive; an absent input is the
//     value of empty name.
//   - A node without inputs gets one absent input, where the decoder would invent a named one. A
//     graph whose output is an input, a weight, or listed twice gets an Identity; so graphs without
//     nodes, which the decoder refuses, do not occur. Models without inputs need nothing: it counts
//     outputs too.
//   - The decoder passes on operator, attributes and results. The node's name, its domain and the
//     opset in force travel as attributes of reserved names.
//   - Numbers and strings, and lists of them, travel as attributes. Tensors, sparse tensors, types
//     and sub-graphs are carried beside the graph; the attribute then holds the index of what is
//     carried. A sub-graph is compiled when its node is: lowered and decoded by a decoder of its
//     own.
//
// # How a model runs
//
// The decoded nodes become a program: steps over numbered slots. Each step's kernel was built once,
// from the node's attributes. Intermediate values get registers, blocks of memory that values with
// disjoint lifetimes take turns in. A register grows to the largest value it ever holds, so shapes
// may be dynamic, and a run whose shapes were seen before allocates nothing. All of that lives in a
// frame; concurrent runs have a frame each, a binding owns one.
//
// Matrix products are gonum's, cut into tiles that keep gonum serial, the rows shared out over
// Options.Threads goroutines; every element is summed in one order, so results do not depend on the
// number of threads. For few rows gonum skips a zero of the left factor without looking at the
// right one: there, zero times an infinity is zero. float16 and bfloat16 are computed in float32
// and rounded once per operator.
//
// Whatever data can get wrong is an engine.RunError naming the node. A panic inside a kernel is
// caught at the end of the run and reported in the same way.
//
// # How to add an operator
//
// Choose the file of its family, or start one with a table of its own named in table.go. Add a line
// to the family's table: name, opsets, arity, and a function that builds the kernel. The builder
// reads the attributes and refuses what it does not know (errors for wrong models, unsupported for
// valid ones). The kernel reads inputs with arg, makes outputs with make, view or give, takes
// temporary memory from scratch, keeps state with keep, and checks everything that depends on data.
// The conformance suite in runtime/internal/nodecases finds the operator's cases by itself; run it
// with -update and read the difference.
package portable
