package league

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/games"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Field is the world of a league and who plays in it, to play games beside those of the record.
type Field struct {
	dir     string
	c       Config
	members []Member
	factory envs.Factory
	worlds  envs.MultiFactory
}

// OpenField opens the world of the league in a directory, which may still go on, as the document
// of the league has it with edits, such as experiment.env.world.opening=0. The caller closes it.
func OpenField(ctx context.Context, dir string, kinds experiment.Kinds, sets ...string) (_ *Field, err error) {
	f := &Field{}
	if f.dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if f.c, err = stored(f.dir, sets...); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	members, _, err := load(f.dir)
	if err != nil {
		return nil, err
	}
	f.members = members.Records()
	doc, err := f.c.experiment(f.dir)
	if err != nil {
		return nil, err
	}
	var env configs.Kinded
	if s, ok := doc.Lookup("env"); ok {
		err = s.Decode(&env)
	}
	if err != nil {
		return nil, err
	}
	if f.factory, err = envs.Open(ctx, kinds.Envs, env); err != nil {
		return nil, err
	}
	if f.worlds, err = worldsOf(f.factory); err != nil {
		return nil, errors.Join(err, f.factory.Close())
	}
	return f, nil
}

// Close closes the world.
func (f *Field) Close() error { return f.factory.Close() }

// Matrix reports whether the world is a matrix game, of which exploitability is known.
func (f *Field) Matrix() bool {
	_, ok := f.worlds.Config().(games.MatrixConfig)
	return ok
}

// Exploit computes the exploitability of what the learner was; nil where the world is no matrix
// game.
func (f *Field) Exploit(ctx context.Context, c engine.Compiler) (*Exploitability, error) {
	var list []versus.Opponent
	for _, m := range f.members {
		if m.RolledBack == "" {
			list = append(list, f.member(m))
		}
	}
	return exploit(ctx, f.worlds, compiled(c), list)
}

func (f *Field) member(m Member) versus.Opponent {
	return versus.Opponent{Name: m.Name, Path: filepath.Join(f.dir, filepath.FromSlash(m.Model))}
}

// Play lets two players play so many games, see [Games]. A player is a member by name, an ONNX
// file, or a scripted player as a document has it.
func (f *Field) Play(ctx context.Context, c engine.Compiler, a, b string, n int, greedy bool, seed uint64) (Match, error) {
	var both [2]versus.Opponent
	for i, text := range [2]string{a, b} {
		o, err := f.player(text)
		if err != nil {
			return Match{}, err
		}
		o.Greedy = o.Greedy || greedy && o.Path != ""
		both[i] = o
	}
	if both[0].Called() == both[1].Called() {
		both[1].Name = both[1].Called() + " (2)"
	}
	return Games(ctx, f.worlds, compiled(c), both[0], both[1], n, together, rng.New(seed).Split("play"))
}

// player finds who is meant.
func (f *Field) player(text string) (o versus.Opponent, err error) {
	var names []string
	for _, m := range f.c.opponents(f.dir) {
		if names = append(names, m.Called()); m.Called() == text {
			return m, nil
		}
	}
	for _, m := range f.members {
		switch {
		case m.RolledBack != "":
		case m.Name == text:
			return f.member(m), nil
		default:
			names = append(names, m.Name)
		}
	}
	if info, err := os.Stat(text); err == nil && !info.IsDir() {
		return versus.Opponent{Name: filepath.Base(text), Path: text}, nil
	}
	script := text
	if !strings.HasPrefix(text, "{") {
		script = "{kind: " + text + "}"
	}
	doc, err := configs.Parse("player", []byte("player: "+script+"\n"))
	if err == nil {
		err = doc.Decode(&o)
	}
	if err == nil {
		o.Name = strings.Trim(script, "{}")
		_, err = envs.NewPlayer(f.worlds, o.Player)
	}
	if err != nil {
		why := err.Error()
		if list := (configs.Errors)(nil); errors.As(err, &list) {
			// The text is no file to point into.
			why = list[0].Message
		}
		return o, fmt.Errorf("%s is neither a member of the league, which are %s, nor a file, nor a scripted player: %s", text, strings.Join(names, ", "), why)
	}
	return o, nil
}

// compiled is a compiler that is open.
func compiled(c engine.Compiler) func(context.Context) (engine.Compiler, error) {
	return func(context.Context) (engine.Compiler, error) { return c, nil }
}
