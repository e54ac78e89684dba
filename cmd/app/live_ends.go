package app

import (
	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/agents/livetrade/kafka"
	"github.com/onnxrl/onnxrl/agents/livetrade/websocket"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/envs/market/broker/alpaca"
)

// liveEnd is a kind of source or sink: where bars come from, or decisions go to.
type liveEnd[T any] struct {
	name, summary string
	defaults      func() any
	open          func(c *livetrade.Config, s configs.Kinded) (T, error)
}

type liveEnds[T any] []liveEnd[T]

var liveSources = liveEnds[livetrade.Source]{
	{"file", "lines of a file, which may grow", func() any { return files.SourceConfig{} }, func(_ *livetrade.Config, s configs.Kinded) (livetrade.Source, error) {
		var c files.SourceConfig
		if err := s.Decode(&c); err != nil {
			return nil, err
		}
		return files.NewSource(c), nil
	}},
	{"kafka", "a topic of Apache Kafka", func() any { return kafka.DefaultSource() }, func(_ *livetrade.Config, s configs.Kinded) (livetrade.Source, error) {
		c := kafka.DefaultSource()
		if err := s.Decode(&c); err != nil {
			return nil, err
		}
		return kafka.NewSource(c), nil
	}},
	{"websocket", "a peer that sends them by a websocket", func() any { return websocket.DefaultSource() }, func(_ *livetrade.Config, s configs.Kinded) (livetrade.Source, error) {
		c := websocket.DefaultSource()
		if err := s.Decode(&c); err != nil {
			return nil, err
		}
		return websocket.NewSource(c), nil
	}},
}

var liveSinks = liveEnds[livetrade.Sink]{
	{"file", "a file for each topic in a directory", func() any { return files.SinkConfig{} }, func(_ *livetrade.Config, s configs.Kinded) (livetrade.Sink, error) {
		var c files.SinkConfig
		if err := s.Decode(&c); err != nil {
			return nil, err
		}
		return files.NewSink(c), nil
	}},
	{"kafka", "topics of Apache Kafka, each decision in a transaction", func() any { return kafka.SinkConfig{} }, func(l *livetrade.Config, s configs.Kinded) (livetrade.Sink, error) {
		var c kafka.SinkConfig
		if err := s.Decode(&c); err != nil {
			return nil, err
		}
		return kafka.NewSink(c, l.Name), nil
	}},
}

var liveBrokers = liveEnds[broker.Broker]{
	{"alpaca", "an account of Alpaca, by default the paper account; the key is in " + alpaca.KeyVariable + " and " + alpaca.SecretVariable, func() any { return alpaca.Defaults() }, func(_ *livetrade.Config, s configs.Kinded) (broker.Broker, error) {
		c := alpaca.Defaults()
		if err := s.Decode(&c); err != nil {
			return nil, err
		}
		return alpaca.New(c, nil)
	}},
}

// kinds are those that a document can name.
func (list liveEnds[T]) kinds() (kinds []configs.Kind) {
	for _, e := range list {
		kinds = append(kinds, configs.Kind{Name: e.name, Summary: e.summary, Defaults: e.defaults})
	}
	return kinds
}

// make makes the one that a document names.
func (list liveEnds[T]) make(c *livetrade.Config, s configs.Kinded) (end T, err error) {
	var known []string
	for _, e := range list {
		if e.name == s.Kind {
			return e.open(c, s)
		}
		known = append(known, e.name)
	}
	return end, s.Unknown(known)
}

// tellTrouble has brokers that do not answer told.
func tellTrouble(source livetrade.Source, sink livetrade.Sink, say func(string)) {
	if s, ok := source.(*kafka.Source); ok {
		s.Say = say
	}
	if s, ok := sink.(*kafka.Sink); ok {
		s.Say = say
	}
}
