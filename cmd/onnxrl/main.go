// Command onnxrl trains, inspects and serves agents and models whose networks are ONNX graphs. It
// is package cmd/app over the environments, algorithms and encoders that come with it.
package main

import (
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
)

func main() { app.Main(kinds.All(), app.Name("onnxrl")) }
