package websocket

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// SourceConfig is the section of a source of this package.
type SourceConfig struct {
	// URL is wss://HOST/PATH, or ws:// for an address of this machine.
	URL string `yaml:"url"`
	// TokenFile has a bearer token, or TokenVariable names the environment variable that has it. It
	// is read whenever a connection is made.
	TokenFile     string `yaml:"token_file,omitzero"`
	TokenVariable string `yaml:"token_variable,omitzero"`
	// Subscribe are texts that are sent whenever a connection was made, in order.
	Subscribe []string `yaml:"subscribe,omitzero"`
	// Resume asks the peer to go on from a time.
	Resume Resume `yaml:"resume,omitzero"`
	// Ping is how often the peer is pinged. It has gone where it has not answered after twice as
	// long, and nothing else has come. 0 does not ping.
	Ping time.Duration `yaml:"ping"`
	// Silence is how long no message may come before the source connects again, at the latest
	// after twice as long; 0 does not look, as markets close.
	Silence time.Duration `yaml:"silence,omitzero"`
	// MaxMessage is the most bytes of a message. A longer one ends the connection.
	MaxMessage int `yaml:"max_message"`
	// Buffer is how many bytes of messages may wait for the service. As long as there are more
	// nothing is read.
	Buffer int `yaml:"buffer"`
	// Pause is the longest wait before the source connects again, which doubles up to MaxPause
	// until a message has come; at least half of it is waited.
	Pause    time.Duration `yaml:"pause"`
	MaxPause time.Duration `yaml:"max_pause"`
	// End ends when the peer closes the connection normally, with the status 1000; otherwise the
	// source connects again.
	End bool `yaml:"end,omitzero"`
}

// Resume says how a peer that can is asked for bars from a time on: that of the last which was
// complete, in UTC as RFC 3339 has it. Before the first nothing is asked.
type Resume struct {
	// Query is the parameter of the URL that has the time.
	Query string `yaml:"query,omitzero"`
	// Message is a text that is sent after those of Subscribe, with the time in the place of
	// {time}.
	Message string `yaml:"message,omitzero"`
}

// timePlace is what stands for the time in Resume.Message.
const timePlace = "{time}"

// DefaultSource returns the defaults; URL must be set.
func DefaultSource() SourceConfig {
	return SourceConfig{Ping: 15 * time.Second, MaxMessage: 64 << 10, Buffer: 16 << 20, Pause: time.Second, MaxPause: time.Minute}
}

// Validate reports what is wrong with the fields.
func (c SourceConfig) Validate() error {
	var p configs.Problems
	if _, err := parseURL(c.URL, true); err != nil {
		p.Addf("url", "%v", err)
	}
	p.Check(c.TokenFile == "" || c.TokenVariable == "", "token_variable", "there is a token_file as well: expected one of them")
	for i, text := range c.Subscribe {
		p.Check(text != "", fmt.Sprintf("subscribe[%d]", i), "it is empty")
	}
	p.Check(c.Resume.Message == "" || strings.Contains(c.Resume.Message, timePlace), "resume.message", "expected a text with %s in it", timePlace)
	p.NonNegative("ping", c.Ping)
	p.NonNegative("silence", c.Silence)
	p.Check(c.MaxMessage >= 1 && c.MaxMessage <= 1<<30, "max_message", "%d, expected 1 to 2³⁰ bytes", c.MaxMessage)
	p.Check(c.Buffer >= c.MaxMessage, "buffer", "%d, expected at least max_message, %d", c.Buffer, c.MaxMessage)
	p.Check(c.Pause > 0, "pause", "%v, expected more than 0", c.Pause)
	p.Check(c.MaxPause >= c.Pause, "max_pause", "%v, expected at least pause, %v", c.MaxPause, c.Pause)
	return p.Err()
}

// parseURL reads an address of bars, with a query or without. The error does not repeat it:
// somebody may have put a password into it.
func parseURL(text string, query bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Fragment != "" || !query && u.RawQuery != "" {
		return nil, errors.New("expected an address such as wss://example.com/bars, or ws://localhost:9466/bars of this machine")
	}
	switch {
	case u.User != nil:
		return nil, errors.New("it has a user: expected token_file or token_variable instead")
	case u.Scheme == "wss", u.Scheme == "ws" && loopback(u):
		return u, nil
	case u.Scheme == "ws":
		return nil, fmt.Errorf("%s is not this machine: expected wss", u.Host)
	}
	return nil, fmt.Errorf("the scheme is %q, expected wss, or ws of this machine", u.Scheme)
}

func loopback(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// token reads the bearer token, empty where none is configured.
func (c *SourceConfig) token() (string, error) {
	token, err := secretfile.FileOrVariable(c.TokenFile, c.TokenVariable)
	if err != nil {
		key := "token_file"
		if c.TokenFile == "" {
			key = "token_variable"
		}
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return token, nil
}
