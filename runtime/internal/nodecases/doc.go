// Package nodecases runs ONNX's backend test cases for single operators against an engine.
//
// A case is a model with sets of inputs and expected outputs, laid out as the ONNX repository has
// them under onnx/backend/test/data/node:
//
//	test_<name>/model.onnx
//	test_<name>/test_data_set_<k>/input_<i>.pb
//	test_<name>/test_data_set_<k>/output_<i>.pb
//
// [Open] reads a directory or a .tar.gz of that layout; [Run] decodes each model, runs it, compares
// what comes out, encodes the model, decodes it again and runs that too, which must give the same
// bits. The environment variable [EnvCases] names ONNX's own cases. They are not part of this
// repository: .ci/nodecases makes them by the onnx package. testdata/own.tar.gz is: cases generated
// by cmd/peers/cases.py, models and random numbers of our own with ONNX Runtime's results; and
// testdata/reported, cases that an engine failed.
//
// Cases that an engine need not pass are in testdata/exceptions_<engine>.txt, each with its reason. A
// case on the list that passes is an error, as is one that fails and is not there. After a change for
// the better, run
//
//	ONNXRL_NODE_CASES=$(.ci/nodecases) go test ./runtime/internal/nodecases -update
//
// and write down why, where a case fails that did not before.
//
// To cover an operator that ONNX has no case for, add it to cmd/peers/cases.py and run that script.
package nodecases
