package live_test

import (
	"io/fs"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
)

// demo is the data section of the shipped experiment, with the window of its environment.
func demo(t testing.TB) prepared.Config {
	t.Helper()
	text, err := fs.ReadFile(configs.Shipped(), "demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("demo.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	section, _ := doc.Lookup("env.data")
	c := prepared.Default()
	if err := section.Decode(&c); err != nil {
		t.Fatal(err)
	}
	c.Window = 20
	return c
}
