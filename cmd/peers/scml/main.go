// Command scml plays a world with agents whose dice always fall alike, for scml_compare.py: what
// they draw does not depend on the order in which they draw, and so the official agents, with the
// same dice, must decide the same.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

func main() {
	u := flag.Float64("u", 0.5, "every uniform number, at least 0 and less than 1")
	out := flag.String("o", "", "file to write")
	flag.Parse()
	if err := run(flag.Arg(0), *out, opponents.LoadedDice(*u)); err != nil {
		fmt.Fprintln(os.Stderr, "scml:", err)
		os.Exit(1)
	}
}

func run(path, out string, dice *opponents.Dice) error {
	file, err := record.Read(path)
	if err != nil {
		return err
	}
	c, err := file.Config()
	if err != nil {
		return err
	}
	agents := make([]world.Agent, len(c.Factories))
	for i := range agents {
		kind, err := opponents.Find(c.Factories[i].Type)
		if err != nil {
			return err
		}
		agents[i] = kind.New(dice)
	}
	t, err := world.Sit(c, agents)
	if err != nil {
		return err
	}
	r := record.NewRecorder(t.World, 0)
	for t.PlayDay() {
		r.Day()
	}
	for i := range agents {
		if f := t.Faults(i); f.Panics > 0 {
			return fmt.Errorf("%s has failed %d times: %s", c.Factories[i].ID, f.Panics, f.First)
		}
	}
	return r.File().Write(out)
}
