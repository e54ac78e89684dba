package experiment

import (
	"context"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Kinds lists what documents can name: package kinds has those that come with onnxrl, to which a
// program may append its own.
type Kinds struct {
	Envs     []envs.Kind
	Agents   []agents.Kind
	Encoders []encoder.Kind
	// Datasets are the formats of the data sets that dataset.path names, Replays the protocols of
	// replay.kind, and Actors those of train.actors.urls.
	Datasets []replay.DatasetKind
	Replays  []replay.ServedKind
	Actors   []actors.Kind
	// Judges evaluate policies in environments that are not evaluated by whole episodes.
	Judges []Judge
	// Lists are what sections of environments name beside kinds, as [configs.Book.Lists] has them.
	Lists map[string][]configs.Kind
	// Document, unless nil, reads the document of a path in place of the function [Document]: a
	// program may have other places than files, such as its standard input.
	Document func(path string) (*configs.Document, error)
	// Translate, unless nil, makes experiments of documents of other programs, as package convert does;
	// any other document it returns as it is.
	Translate func(doc *configs.Document) (*configs.Document, error)
	// Engine, unless nil, opens the engine of the models that environments consist of, such as the
	// experts of a router. It stays the caller's. Runs and evaluations use the one they are given.
	Engine func(ctx context.Context) (engine.Compiler, error)
	// Note, unless nil, receives notes about configurations that are opened: keys that have other
	// names now.
	Note func(text string)
}

// Setup is what the agent of a document is made with, by an engine: everything that trains one, or
// restores it, begins so.
func (k Kinds) Setup(c Config, e engine.Compiler) agents.Setup {
	return agents.Setup{Engine: e, Encoders: k.Encoders, Key: rng.New(c.Seed)}
}

// On returns the kinds whose environments run models by an engine.
func (k Kinds) On(c engine.Compiler) Kinds {
	if c != nil {
		k.Engine = func(context.Context) (engine.Compiler, error) { return c, nil }
	}
	return k
}

// Agent returns what makes the agents that a section describes, and the section with its effective
// parameters, defaults included.
func (k Kinds) Agent(c configs.Kinded) (agents.Maker, configs.Kinded, error) {
	maker, err := agents.Parse(k.Agents, c)
	if err == nil {
		c, err = configs.NewKinded(c.Kind, maker.Config())
	}
	return maker, c, err
}
