// Command own is onnxrl over an environment of its own.
package main

import (
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
)

func main() {
	k := kinds.All()
	k.Envs = append(k.Envs, thermostat)
	app.Main(k, app.Name("own"), app.Version("1.2.3"))
}
