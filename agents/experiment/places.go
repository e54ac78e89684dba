package experiment

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
)

// unlisted says that a key names something that the program was not given.
func unlisted(key, what, list string, names []string) error {
	have := "is empty"
	if len(names) > 0 {
		have = "has " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s: this program has no %s: the list %s of its experiment.Kinds %s", key, what, list, have)
}

// Dataset opens the data set in a folder, of the first of the kinds that knows its format.
func (k Kinds) Dataset(dir string) (d replay.Recorded, err error) {
	if len(k.Datasets) == 0 {
		return nil, unlisted(DatasetPath, "reader of data sets", "Datasets", nil)
	}
	for _, kind := range k.Datasets {
		if d, err = kind.Open(dir); err == nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", DatasetPath, err)
}

// Learn reads the data set of a document as [replay.Recorded] does.
func (k Kinds) Learn(ctx context.Context, f envs.Factory, c replay.Dataset) (agents.Replay, func(context.Context, agents.Agent) (map[string]float64, error), error) {
	d, err := k.Dataset(c.Path)
	if err != nil {
		return nil, nil, err
	}
	given, judge, err := d.Learn(ctx, f, c)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", DatasetPath, err)
	}
	return given, judge, nil
}

// DialReplay connects to the replay of a document.
func (k Kinds) DialReplay(c replay.Served) (replay.Connection, error) {
	var names []string
	for _, kind := range k.Replays {
		if kind.Name == c.Kind {
			conn, err := kind.Dial(c)
			if err != nil {
				return nil, fmt.Errorf("replay: %w", err)
			}
			return conn, nil
		}
		names = append(names, kind.Name)
	}
	return nil, unlisted("replay.kind", "replay of the kind "+c.Kind, "Replays", names)
}

// LaunchActors returns what begins the actors of a document at its servers, whose learner runs its
// networks by an engine of that name. There is at least one URL.
func (k Kinds) LaunchActors(c actors.Config, engine string, log *slog.Logger) (func(ctx context.Context, index int) (actors.Conn, error), error) {
	scheme, _, _ := strings.Cut(c.URLs[0], "://")
	var names []string
	for _, kind := range k.Actors {
		if slices.Contains(kind.Schemes, scheme) {
			return kind.Launch(c, engine, log), nil
		}
		names = append(names, kind.Name)
	}
	return nil, unlisted("train.actors.urls", "actors at "+scheme+"://", "Actors", names)
}
