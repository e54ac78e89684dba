// Package app is the program onnxrl over any lists of kinds: what trains, inspects, evaluates and
// serves agents and models whose networks are ONNX graphs. Each file is one subcommand, or a part
// of one: its flags, what it wires together and what it prints. What a subcommand does is in
// packages below agents, models, envs and export, where other programs find it too.
//
// # A program of your own
//
// The whole program over environments, algorithms and encoders of your own is
//
//	func main() {
//		k := kinds.All()
//		k.Envs = append(k.Envs, mine.Kind)
//		app.Main(k, app.Name("mine"))
//	}
//
// with package agents/experiment/kinds. Nothing has to be registered.
//
// # How to add a subcommand
//
// Write a file that is called after it, with a method of app that returns its [cobra.Command], and
// add that to the list of app.commands. Tables have --json with stable keys, errors name what was
// expected, and the exit status is 1 when what a command checks does not hold.
package app
