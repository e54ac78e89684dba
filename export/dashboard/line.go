package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

var errLine = errors.New("not a line of metrics")

// metricsLine is a line as runtime/metrics writes it: an object of numbers with step and time.
// Reading one allocates nothing once pairs has room, unless a tag has escapes.
type metricsLine struct {
	step int64
	// time is in seconds since 1970, NaN where there is none.
	time  float64
	pairs []pair
}

// pair is a value by its tag, whose bytes are those of the line.
type pair struct {
	tag   []byte
	value float64
}

// parse replaces the line. What is no such line is an error.
func (l *metricsLine) parse(text []byte) error {
	l.step, l.time, l.pairs = -1, math.NaN(), l.pairs[:0]
	p := bytes.TrimSpace(text)
	if len(p) < 2 || p[0] != '{' || p[len(p)-1] != '}' {
		return errLine
	}
	p = p[1 : len(p)-1]
	for {
		p = bytes.TrimLeft(p, " \t\r")
		if len(p) == 0 {
			break
		}
		tag, rest, err := quoted(p)
		if err != nil {
			return err
		}
		rest = bytes.TrimLeft(rest, " \t\r")
		if len(rest) == 0 || rest[0] != ':' {
			return errLine
		}
		v, rest, err := number(bytes.TrimLeft(rest[1:], " \t\r"))
		if err != nil {
			return err
		}
		switch string(tag) {
		case "step":
			if !(v >= 0 && v < 1<<62) { // NaN too
				return errLine
			}
			l.step = int64(v)
		case "time":
			l.time = v
		default:
			l.pairs = append(l.pairs, pair{tag, v})
		}
		rest = bytes.TrimLeft(rest, " \t\r")
		if len(rest) == 0 {
			break
		}
		if rest[0] != ',' {
			return errLine
		}
		p = rest[1:]
	}
	if l.step < 0 {
		return errLine
	}
	return nil
}

// number reads a number at the beginning of p, or a word that stands for one that JSON lacks.
func number(p []byte) (v float64, rest []byte, err error) {
	if len(p) > 0 && p[0] == '"' {
		word, rest, err := quoted(p)
		if err != nil {
			return 0, nil, err
		}
		switch string(word) {
		case "NaN":
			return math.NaN(), rest, nil
		case "Infinity":
			return math.Inf(1), rest, nil
		case "-Infinity":
			return math.Inf(-1), rest, nil
		}
		return 0, nil, errLine
	}
	n := 0
	for n < len(p) && p[n] != ',' && p[n] != ' ' {
		n++
	}
	if string(p[:n]) == "null" {
		return math.NaN(), p[n:], nil
	}
	if v, err = strconv.ParseFloat(string(p[:n]), 64); err != nil {
		return 0, nil, errLine
	}
	return v, p[n:], nil
}

// quoted reads a string of JSON at the beginning of p, which is not empty.
func quoted(p []byte) (s, rest []byte, err error) {
	if p[0] != '"' {
		return nil, nil, errLine
	}
	for i := 1; i < len(p); i++ {
		switch p[i] {
		case '"':
			return p[1:i], p[i+1:], nil
		case '\\':
			dec := json.NewDecoder(bytes.NewReader(p))
			var text string
			if err := dec.Decode(&text); err != nil {
				return nil, nil, errLine
			}
			return []byte(text), p[dec.InputOffset():], nil
		}
	}
	return nil, nil, errLine
}
