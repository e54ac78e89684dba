package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// startLog makes the log of the command line, as --log-level and --log-format ask. In JSON every
// line of standard error is an object with time, level and msg, whoever writes it.
func (a *app) startLog() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return fmt.Errorf("--log-level %q: expected debug, info, warn or error", a.logLevel)
	}
	switch a.logFormat {
	case "text":
		a.log = slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: dropTime}))
	case "json":
		a.lines = newLogLines(a.err, a.name)
		a.log = slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level}))
		a.err = a.lines
	default:
		return fmt.Errorf("--log-format %q: expected text or json", a.logFormat)
	}
	a.stop.tellOn(a.err, a.name)
	return nil
}

// requestLog is the log of a server's requests.
func (a *app) requestLog() *slog.Logger {
	if a.lines != nil {
		return a.lines.log
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

func dropTime(_ []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// logLines makes each line of text that is written to it a line of a log in JSON.
type logLines struct {
	log  *slog.Logger
	name string

	mu   sync.Mutex
	rest []byte // a line that has not ended
}

func newLogLines(w io.Writer, name string) *logLines {
	return &logLines{name: name, log: slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))}
}

// Write implements io.Writer. What marks a line as a warning of this program becomes its level.
func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		text := strings.TrimPrefix(strings.TrimSpace(string(l.rest[:i])), l.name+": ")
		l.rest = l.rest[i+1:]
		level := slog.LevelInfo
		if rest, ok := strings.CutPrefix(text, "warning: "); ok {
			level, text = slog.LevelWarn, rest
		}
		if text != "" {
			l.log.Log(context.Background(), level, text)
		}
	}
}
