package websocket

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// connectWithin is how long a connection may take until everything is asked for, and closeWithin
// how long the peer may take to say good-bye.
const (
	connectWithin = 15 * time.Second
	closeWithin   = time.Second
)

// connector makes the connections of a source, one at a time.
type connector struct {
	*Source
	connections int
	ended       time.Time // of the last
}

// connection makes a connection, and gives its messages to the queue until it ends. The error says
// why it did.
func (c *connector) connection(ctx context.Context) (messages int, err error) {
	link, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	if c.connections++; c.connections > 1 {
		c.reconnects.Add(1)
		c.say(fmt.Sprintf("%s: connected again, %v after the connection before has ended; what came in between is missing where the peer does not send it again", c.name(), time.Since(c.ended).Round(time.Millisecond)))
	}
	defer func() { c.ended = time.Now() }()
	gone, why := make(chan struct{}), make(chan error, 2)
	var beside sync.WaitGroup
	beside.Go(func() {
		select {
		case <-gone:
		case <-ctx.Done():
			link.bye(websocket.StatusNormalClosure, closeWithin)
		}
	})
	watch := func(every time.Duration, look func() error) {
		if every > 0 {
			beside.Go(func() { why <- c.watch(ctx, link, gone, every, look) })
		}
	}
	watch(c.c.Ping, c.pings(ctx, link, &beside))
	watch(c.c.Silence, c.silence(link))
	messages, err = c.read(ctx, link)
	close(gone)
	_ = link.conn.CloseNow() // It has ended, or nothing is expected of it.
	beside.Wait()
	close(why)
	for x := range why {
		if x != nil {
			err = x
		}
	}
	return messages, err
}

// read takes messages until there are no more.
func (c *connector) read(ctx context.Context, link *link) (messages int, err error) {
	for {
		// The end of the service does not end a read: first the peer receives a close frame.
		kind, value, err := link.conn.Read(context.WithoutCancel(ctx))
		if errors.Is(err, websocket.ErrMessageTooBig) {
			err = fmt.Errorf("a message is longer than max_message, %d bytes", c.c.MaxMessage)
		}
		if err != nil {
			return messages, err
		}
		link.messages.Add(1)
		if kind == websocket.MessageText {
			value = bytes.TrimSpace(value)
		}
		if err := c.queue.put(ctx, value); err != nil {
			return messages, err
		}
		messages++
	}
}

// watch looks at a connection every so often, and ends it with the error that it is given.
func (c *connector) watch(ctx context.Context, link *link, gone <-chan struct{}, every time.Duration, look func() error) error {
	tick := c.ticker(every)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return nil
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := look(); err != nil {
			_ = link.conn.CloseNow()
			return err
		}
	}
}

// pings asks the peer whether it is there. Where there is no room for messages nothing is read, and
// a peer that waits for room may give up when it cannot answer: then it is not asked.
func (c *connector) pings(ctx context.Context, link *link, beside *sync.WaitGroup) func() error {
	var answers atomic.Int64
	var asking atomic.Bool
	asked, missed, before := false, 0, int64(0)
	return func() error {
		stalls, stalled := c.queue.stalling()
		now := answers.Load() + link.messages.Load() + stalls
		if asked && now == before && !stalled {
			missed++
		} else {
			missed = 0
		}
		if before = now; missed == 2 {
			return fmt.Errorf("the peer has not answered a ping within twice %v", c.c.Ping)
		}
		if !stalled && asking.CompareAndSwap(false, true) {
			asked = true
			beside.Go(func() {
				if link.conn.Ping(ctx) == nil {
					answers.Add(1)
				}
				asking.Store(false)
			})
		}
		return nil
	}
}

// silence looks whether messages come.
func (c *connector) silence(link *link) func() error {
	before := int64(0)
	return func() error {
		stalls, stalled := c.queue.stalling()
		now := link.messages.Load() + stalls
		if now == before && !stalled {
			return fmt.Errorf("no message has come for %v", c.c.Silence)
		}
		before = now
		return nil
	}
}

// link is a connection.
type link struct {
	conn     *websocket.Conn
	messages atomic.Int64
	mu       sync.Mutex
	raw      net.Conn
}

// bye closes a connection, whether or not the peer answers within so long.
func (l *link) bye(status websocket.StatusCode, within time.Duration) {
	timer := time.AfterFunc(within, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		_ = l.raw.Close() // Who does not answer is left.
	})
	defer timer.Stop()
	_ = l.conn.Close(status, "") // It ends in any case.
}

// connect connects, and asks for what is to be asked for.
func (c *connector) connect(ctx context.Context) (_ *link, err error) {
	token, err := c.c.token()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	since := ""
	if at := c.decided.Load(); at != 0 {
		since = time.UnixMicro(at).UTC().Format(time.RFC3339Nano)
	}
	u := *c.url
	if name := c.c.Resume.Query; name != "" && since != "" {
		q := u.Query()
		q.Set(name, since)
		u.RawQuery = q.Encode()
	}
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	l := &link{}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: connectWithin, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.raw = raw
		return raw, err
	}}
	if c.roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: c.roots}
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	conn, answer, err := websocket.Dial(ctx, u.String(), &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	if err != nil {
		return nil, dialError(answer, err)
	}
	l.conn = conn
	conn.SetReadLimit(int64(c.c.MaxMessage))
	texts := c.c.Subscribe
	if text := c.c.Resume.Message; text != "" && since != "" {
		texts = append(texts[:len(texts):len(texts)], strings.ReplaceAll(text, timePlace, since))
	}
	for i, text := range texts {
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			_ = conn.CloseNow()
			return nil, fmt.Errorf("message %d to the peer: %w", i, err)
		}
	}
	return l, nil
}

// dialError says why there is no connection, without the address, whose query may have a key.
func dialError(answer *http.Response, err error) error {
	if answer != nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the peer answers %s", answer.Status)
		switch code := answer.StatusCode; {
		case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		case code < 500:
			return refused{err}
		}
		return err
	}
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return refused{err}
	}
	return err
}
