package versus

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
)

// Config is the configuration of the kind.
type Config struct {
	// World is the world of several agents that is played in.
	World configs.Kinded `yaml:"world" kinds:"env"`
	// Seats are the agents of the world whose part the learner plays, one of them in each episode,
	// drawn with equal probabilities; without any it plays all.
	Seats []string `yaml:"seats,omitempty"`
	// Opponents are the pool: who plays the other seats.
	Opponents []Opponent `yaml:"opponents"`
}

// Opponent is a member of a pool: a scripted player of the world, or a model.
type Opponent struct {
	// Name is what reports and errors call it; empty is the name of the player, or the path.
	Name string `yaml:"name,omitempty"`
	// Weight is how often it is drawn, in proportion to the weights of the others; absent is 1.
	Weight *float64 `yaml:"weight,omitempty"`
	// Player is a scripted player: random, or one that the world has.
	Player configs.Kinded `yaml:"player,omitzero"`
	// Path is an ONNX file: an exported agent, or anything with the same inputs and outputs. It
	// draws its actions where its probabilities are known, and always takes the best with Greedy.
	Path   string `yaml:"path,omitempty"`
	Greedy bool   `yaml:"greedy,omitempty"`
}

// Called is the name of the opponent.
func (o Opponent) Called() string {
	switch {
	case o.Name != "":
		return o.Name
	case o.Path != "":
		return o.Path
	}
	return o.Player.Kind
}

func (o Opponent) weight() float64 {
	if o.Weight == nil {
		return 1
	}
	return *o.Weight
}

// Validate reports all problems.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.World.Kind != "", "world.kind", "required: the name of a world of several agents, such as connect_four")
	Check(&p, "opponents", c.Opponents)
	return p.Err()
}

// Check reports what is wrong with a pool at a key.
func Check(p *configs.Problems, key string, list []Opponent) {
	p.Check(len(list) > 0, key, "a pool without members: expected at least one, a player or the path of a model")
	sum, seen, sound := 0.0, map[string]int{}, true
	for i, o := range list {
		at := fmt.Sprintf("%s[%d]", key, i)
		p.Check((o.Player.Kind != "") != (o.Path != ""), at, "expected either player, a scripted player, or path, an ONNX file")
		p.Check(o.Path != "" || !o.Greedy, at+".greedy", "is for models; a player does what its script says")
		w := o.weight()
		fine := w >= 0 && !math.IsInf(w, 0)
		p.Check(fine, at+".weight", "is %g, expected a finite number of at least 0", w)
		sound = sound && fine
		if name := o.Called(); name != "" {
			before, taken := seen[name]
			p.Check(!taken, at+".name", "%q is that of %s[%d], too", name, key, before)
			seen[name] = i
		}
		sum += w
	}
	p.Check(len(list) == 0 || !sound || sum > 0, key, "all weights are 0, and nobody could be drawn")
}
