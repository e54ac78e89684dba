// Package official takes the agent of package scml to the league's own program, which is
// written in Python.
//
// # Concepts
//
// [Files] makes a Python package of an agent's directory: modules, the networks, and a README that
// says how to register it. It needs numpy and onnxruntime, and for the class itself scml, whose
// tournaments that class plays in as it is.
//
// The modules are in the folder python, one for each file in Go that decides something: shield.py
// for package shield; of package scml, executor.py for executor.go and goal.go, observe.py for day.go
// and thread.go, hierarchy.py for agent.go and residual.go, networks.py for open.go. view.py is what they ask of their world, agent.py the class
// that answers that from the league's agent-world interface. All arithmetic is float64, in the
// order of the code in Go, so that decisions are equal.
//
// The decision of a day is one graph, day.onnx, which is the manager. That of a round is one as
// well, round.onnx: executor and coordinator, joined, and their product in float64 as package
// scml computes it. [Files] runs it beside the two and compares.
//
// # Equal decisions
//
// [Calls] writes down what an agent is asked and told in a native world, all that it knew, and what
// it answered: a JSON object in each line. The exported package plays such a recording again,
//
//	python -m PACKAGE.replay CALLS.jsonl
//
// compares each answer, and names the first that differs.
//
// # How to add a rule
//
// Change the Go file, and the module that says it is that file in Python. What the rule asks of its
// world beyond what it asks now becomes an attribute of View in view.py, which agent.py and
// [Calls] fill in.
package official
