package app_test

import (
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/envs/corridor"
)

// The main function of a program that has all subcommands over the shipped kinds and one of its
// own. What it says names the program: "mine train --resume runs/mine-1".
func ExampleMain() {
	k := kinds.All()
	mine := corridor.Kind // in place of an environment of your own
	mine.Name = "mine"
	k.Envs = append(k.Envs, mine)
	app.Main(k, app.Name("mine"), app.Version("1.0.0"))
}
