package prepared

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/universe"
)

// Config is the data section of a run.
type Config struct {
	Source bars.Source `yaml:"source"`
	// Rules is the rule book of an exchange, ashare; empty is none. It gives bars the limits of
	// their days, where they have none of their own, and accounts lots, taxes and settlement.
	Rules string `yaml:"rules,omitzero"`
	// Synthetic, unless absent, makes the bars instead of a source.
	Synthetic configs.Kinded `yaml:"synthetic" kinds:"market"`
	// Series are values that were published at times of their own. They join the extra columns of
	// the source: features.extra and expressions name them. What was not published yet is not
	// known.
	Series   []bars.PublishedSource `yaml:"series,omitzero"`
	Quality  bars.Rules             `yaml:"quality"`
	Calendar bars.Calendar          `yaml:"calendar"`
	// Assets are the symbols in the order of the tensor; empty means all there are, sorted, or
	// those of them that ever belong to the universe.
	Assets []string `yaml:"assets"`
	// Universe, unless absent, says which symbols can be bought when, such as the members of an
	// index.
	Universe universe.Config `yaml:"universe,omitzero"`
	// Window is the number of bars of an observation, W. 0 leaves it to whoever builds the set: in
	// an experiment it is the environment's.
	Window        int                   `yaml:"window"`
	Features      feature.Config        `yaml:"features"`
	Normalization feature.Normalization `yaml:"normalization"`
	Split         split.Config          `yaml:"split"`
	// DropUndefined leaves out the first times, at which no stock has all its features.
	DropUndefined bool `yaml:"drop_undefined"`
	// Cache keeps prepared sets, found by the contents of the files, the configuration and the
	// program: a folder, or a Redis server such as redis://localhost:6379/0, whose password is that
	// of the environment variable ONNXRL_REDIS_PASSWORD. Empty: nothing is kept.
	Cache string `yaml:"cache,omitzero"`
	// Stored, unless empty, is a file that onnxrl data prepare --columns has written. It is mapped
	// into memory in place of all the other keys: bars, features and split are those in the file.
	Stored string `yaml:"stored,omitzero"`
}

// Default returns the defaults, which are those of the QTMRL specification; a source and Split must
// be set.
func Default() Config {
	return Config{
		Source: bars.DefaultSource(), Quality: bars.DefaultRules(), Calendar: bars.DefaultCalendar(), Window: 20, Features: feature.Default(),
		Normalization: feature.DefaultNormalization(), Split: split.Default(), DropUndefined: true,
	}
}

// Validate reports what is wrong with the fields; those of the parts are reported by the parts.
func (c Config) Validate() error {
	var p configs.Problems
	p.NonNegative("window", c.Window)
	p.OneOf("rules", c.Rules, bookNames...)
	if c.Stored != "" {
		p.Check(c.Source.Path == "" && c.Synthetic.Kind == "" && c.Universe.Path == "" && c.Rules == "", "stored", "there are bars to prepare, too; a stored file has been prepared")
		return p.Err()
	}
	p.Check(c.Source.Path != "" || c.Synthetic.Kind != "", "source.path", "required: a file, a folder or a glob of bars")
	p.Check(c.Source.Path == "" || c.Synthetic.Kind == "", "synthetic", "there is a source.path, too; the bars come from one of them")
	if err := checkCache(c.Cache); err != nil {
		p.Addf("cache", "%v", err)
	}
	p.Check(!c.Split.Train.IsZero(), "split.train", split.MissingTrain)
	for i, a := range c.Assets {
		p.Check(a != "" && !slices.Contains(c.Assets[:i], a), fmt.Sprintf("assets[%d]", i), "%q is empty or there twice", a)
	}
	return p.Err()
}
