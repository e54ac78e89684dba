package universe

import "github.com/onnxrl/onnxrl/configs"

// Config says what a universe is and what happens to those who enter and leave it.
type Config struct {
	// Path is a CSV file with the columns symbol, start_date and end_date (the first day outside),
	// or an instruments file of a Qlib folder, which ends in .txt.
	Path string `yaml:"path"`
	// Index chooses the rows of a CSV file whose column index holds it; empty: all there are.
	Index string `yaml:"index,omitzero"`
	// Warmup is the number of bars with all features that a symbol must have before it can be
	// bought, those before it has entered included; 0 is the window.
	Warmup int `yaml:"warmup,omitzero"`
	// Exit is sell (the default) or hold: what is held of a symbol that has left is sold, whatever
	// the agent decides, or it stays until the agent sells it. It cannot be bought either way.
	Exit string `yaml:"exit,omitzero"`
	// ExitDays is the number of days with bars after the one on which a symbol has left before what
	// is held of it is sold.
	ExitDays int `yaml:"exit_days,omitzero"`
}

// The treatments of the shares of a symbol that has left.
const (
	Sell = "sell"
	Hold = "hold"
)

// Validate reports what is wrong with the fields of a universe that has a path.
func (c Config) Validate() error {
	var p configs.Problems
	if c.Path == "" {
		p.Check(c == Config{}, "path", "required: a CSV file of spans, or an instruments file of Qlib's")
		return p.Err()
	}
	p.OneOf("exit", c.Exit, "", Sell, Hold)
	p.NonNegative("warmup", c.Warmup)
	p.NonNegative("exit_days", c.ExitDays)
	p.Check(c.Exit != Hold || c.ExitDays == 0, "exit_days", "%d, but exit: hold sells nothing", c.ExitDays)
	return p.Err()
}
