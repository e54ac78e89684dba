package offpolicy

import (
	"fmt"
	"strconv"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// TrainFreq is the number of rounds between learner steps, or EachEpisode.
type TrainFreq int

// EachEpisode is a learner step after each round in which an episode has ended, in whichever
// environment: the word episode in documents. It needs episodes that end.
const EachEpisode TrainFreq = -1

const episodeWord = "episode"

// UnmarshalText reads a number of rounds, or episode.
func (f *TrainFreq) UnmarshalText(text []byte) error {
	if string(text) == episodeWord {
		*f = EachEpisode
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return fmt.Errorf("expected a number of rounds, at least 1, or %s, found %q", episodeWord, text)
	}
	*f = TrainFreq(n)
	return nil
}

// EncodeConfig implements configs.Encoder: it writes what UnmarshalText reads.
func (f TrainFreq) EncodeConfig() (any, error) {
	if f == EachEpisode {
		return episodeWord, nil
	}
	return int(f), nil
}

// Recorder returns a recorder of r that tells the clock of the ends of episodes.
func (k *Clock) Recorder(r agents.Recorder) agents.Recorder { return &clocked{r, k} }

type clocked struct {
	agents.Recorder
	clock *Clock
}

// End implements agents.Recorder.
func (r *clocked) End(b *vector.Batch) error {
	if err := r.Recorder.End(b); err != nil {
		return err
	}
	if len(b.Ended) > 0 && r.clock.s.TrainFreq == EachEpisode {
		r.clock.EpisodeEnded = true
	}
	return nil
}
