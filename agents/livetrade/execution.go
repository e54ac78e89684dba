package livetrade

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// Execution is how orders are given to a broker. Without one it says nothing.
type Execution struct {
	// Force is how long an order stands: day, opg or cls.
	Force broker.Force `yaml:"force"`
	// Whole rounds quantities down to whole shares.
	Whole bool `yaml:"whole,omitzero"`
	// Least is what an order must be worth at the last close, in the account's currency; smaller
	// ones are left out.
	Least float64 `yaml:"least"`
	// Reserve is by how much more than the last close purchases may cost: together they are cut to
	// cash/(1 + Reserve).
	Reserve float64 `yaml:"reserve"`
	// Late is how old a decision may be whose order is not at the broker yet; it is left out then.
	Late time.Duration `yaml:"late"`
	// Poll is how often the broker is asked while orders are open, and Check how often when none
	// is.
	Poll  time.Duration `yaml:"poll"`
	Check time.Duration `yaml:"check"`
	// Differences says what follows where the broker's positions or open orders are not those that
	// are expected. With refuse it does not begin, or trades no more, and with adopt it goes on
	// from what the broker has.
	Differences broker.Rule `yaml:"differences"`
}

// DefaultExecution returns the defaults.
func DefaultExecution() Execution {
	return Execution{Force: broker.Day, Least: 1, Reserve: 0.05, Late: time.Minute, Poll: time.Second, Check: time.Minute, Differences: broker.Refuse}
}

// Validate reports what is wrong with the fields.
func (x Execution) Validate() error {
	var p configs.Problems
	p.OneOf("force", string(x.Force), string(broker.Day), string(broker.AtOpen), string(broker.AtClose))
	p.Check(x.Least >= 0 && !math.IsInf(x.Least, 0), "least", "%g, expected an amount", x.Least)
	p.Check(x.Reserve >= 0 && !math.IsInf(x.Reserve, 0), "reserve", "%g, expected a part such as 0.05", x.Reserve)
	for _, d := range []struct {
		key string
		d   time.Duration
	}{{"late", x.Late}, {"poll", x.Poll}, {"check", x.Check}} {
		p.Check(d.d > 0, d.key, "%v, expected more than 0", d.d)
	}
	p.OneOf("differences", string(x.Differences), string(broker.Refuse), string(broker.Adopt))
	return p.Err()
}
