package kafka

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Config is what sources and sinks share.
type Config struct {
	// Brokers are addresses to begin with, such as localhost:9092.
	Brokers []string `yaml:"brokers"`
	// Patience is how long brokers may not answer before that is an error; they are asked again
	// until then. 0 is 10 minutes.
	Patience time.Duration `yaml:"patience,omitzero"`
}

func (c Config) check(p *configs.Problems) {
	p.Check(len(c.Brokers) > 0, "brokers", "required: addresses such as localhost:9092")
	for i, b := range c.Brokers {
		p.Check(b != "", fmt.Sprintf("brokers[%d]", i), "it is empty")
	}
	p.NonNegative("patience", c.Patience)
}
