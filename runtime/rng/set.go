package rng

import (
	"encoding/json"
	"fmt"
	"sync"
)

// Set holds the streams of a component by name. A stream is made on first use from the set's key
// and is the same object for the life of the set, also across a restore. Stream may be called
// concurrently; a Stream itself may not.
type Set struct {
	key     Key
	mu      sync.Mutex
	streams map[string]*Stream
}

// NewSet returns an empty set whose streams start at k.Split(name).
func NewSet(k Key) *Set { return &Set{key: k, streams: map[string]*Stream{}} }

// Key returns the key the set was made with.
func (s *Set) Key() Key { return s.key }

// Stream returns the stream with this name.
func (s *Set) Stream(name string) *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream, ok := s.streams[name]
	if !ok {
		stream = s.key.Split(name).Stream()
		s.streams[name] = stream
	}
	return stream
}

type setState struct {
	Key     *Key               `json:"key"`
	Streams map[string]*Stream `json:"streams"`
}

// MarshalJSON writes the key and the state of every stream that has been used.
func (s *Set) MarshalJSON() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return json.Marshal(setState{&s.key, s.streams})
}

// UnmarshalJSON restores what MarshalJSON wrote. Streams handed out before keep their identity and
// continue from the saved state; those the saved set had not used yet go back to their start. On an
// error the set is unchanged.
func (s *Set) UnmarshalJSON(data []byte) error {
	var state setState
	if err := json.Unmarshal(data, &state); err != nil {
		return fmt.Errorf("restore rng set: %w", err)
	}
	if state.Key == nil {
		return fmt.Errorf("restore rng set: the key is missing")
	}
	for name, saved := range state.Streams {
		if saved == nil {
			return fmt.Errorf("restore rng set: stream %q is null", name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string]*Stream{}
	}
	s.key = *state.Key
	for name, stream := range s.streams {
		stream.Seed(s.key.Split(name))
	}
	for name, saved := range state.Streams {
		if stream, ok := s.streams[name]; ok {
			*stream = *saved
			continue
		}
		s.streams[name] = saved
	}
	return nil
}
