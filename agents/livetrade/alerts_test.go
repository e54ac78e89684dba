package livetrade_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
)

// TestAlertsRefuses says what is wrong with a webhook, and never more of its URL than the host.
func TestAlertsRefuses(t *testing.T) {
	cases := 0
	for _, c := range []struct {
		edit func(*livetrade.Alerts)
		want string
	}{
		{func(a *livetrade.Alerts) { a.Webhook = "https://hooks.example.com/hush?x=hush" }, ""},
		{func(a *livetrade.Alerts) { a.Webhook = "http://localhost:1/hush" }, ""},
		{func(a *livetrade.Alerts) { a.Webhook = "http://127.9.0.1/hush" }, ""},
		{func(a *livetrade.Alerts) { a.Webhook = "http://[::1]:80/hush" }, ""},
		{func(a *livetrade.Alerts) { a.Webhook = "http://hooks.example.com/hush" }, "webhook: a receiver at hooks.example.com: expected https, or http of this machine"},
		{func(a *livetrade.Alerts) { a.Webhook = "http://localhost.example.com/hush" }, "expected https"},
		{func(a *livetrade.Alerts) { a.Webhook = "ftp://localhost/hush" }, "expected https"},
		{func(a *livetrade.Alerts) { a.Webhook = "https:///hush" }, "webhook: expected the URL of a receiver"},
		{func(a *livetrade.Alerts) { a.Webhook = "https://host\x7f/hush" }, "webhook: expected the URL of a receiver"},
		{func(a *livetrade.Alerts) { a.Webhook = "https://me:hush@example.com" }, "without a user and a password"},
		{func(a *livetrade.Alerts) { a.Webhook, a.WebhookFile = "https://example.com/hush", "x" }, "webhook_file: expected it or webhook"},
		{func(a *livetrade.Alerts) { a.TokenEnv = "X" }, "webhook: is missing"},
		{func(a *livetrade.Alerts) { a.WebhookFile, a.TokenEnv, a.TokenFile = "x", "X", "x" }, "token_env: expected it or token_file"},
		{func(a *livetrade.Alerts) { a.Timeout = 0 }, "timeout: 0s, expected a duration up to 1m"},
		{func(a *livetrade.Alerts) { a.GiveUp = -time.Second }, "give_up"},
		{func(a *livetrade.Alerts) { a.Queue = 1 }, "queue: 1, expected 2 to 100000 alerts"},
	} {
		a := livetrade.DefaultAlerts()
		c.edit(&a)
		err := a.Validate()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%v, expected %q", err, c.want)
		}
		cases++
	}
	if cases != 16 {
		t.Errorf("%d cases ran", cases)
	}
}

// TestAlertsFromFiles reads the URL and the token from where they are.
func TestAlertsFromFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := livetrade.DefaultAlerts()
	a.WebhookFile, a.TokenFile = write("url", "https://hooks.example.com/hush\n"), write("token", "tok-en\n")
	u, err := a.Endpoint()
	if err != nil || u.String() != "https://hooks.example.com/hush" {
		t.Error(u, err)
	}
	if token, err := a.Token(); err != nil || token != "tok-en" {
		t.Error(token, err)
	}
	cases := 0
	for _, c := range []struct{ url, token, want string }{
		{write("plain", "http://example.com/hush"), "", "alerts.webhook_file: " + filepath.Join(dir, "plain") + ": a receiver at example.com: expected https"},
		{write("two", "https://example.com/hush\nhttps://example.com/hush"), "", "expected the URL of a receiver"},
		{filepath.Join(dir, "none"), "", "alerts.webhook_file: open"},
		{"", filepath.Join(dir, "none"), "alerts.token_file: open"},
		{"", write("empty", "\n"), "there is no token in it"},
		{"", write("words", "two hush"), "line 1: expected a token without spaces"},
	} {
		a := livetrade.DefaultAlerts()
		a.WebhookFile, a.TokenFile = c.url, c.token
		var err error
		if c.url != "" {
			_, err = a.Endpoint()
		} else {
			_, err = a.Token()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v, expected %q", err, c.want)
		}
		cases++
	}
	if cases != 6 {
		t.Errorf("%d cases ran", cases)
	}
	t.Setenv("ALERTS_TOKEN", "")
	a.TokenFile, a.TokenEnv = "", "ALERTS_TOKEN"
	if _, err := a.Token(); err == nil || !strings.Contains(err.Error(), "alerts.token_env: $ALERTS_TOKEN: there are 0 tokens in it, expected one") {
		t.Error(err)
	}
}

// TestGains counts from the first decision and from the last one of the day before.
func TestGains(t *testing.T) {
	var g livetrade.Gains
	at := time.Date(2026, 12, 31, 10, 0, 0, 0, time.UTC)
	steps := 0
	for _, s := range []struct {
		after           time.Duration
		value, pnl, day float64
	}{{0, 100, 0, 0}, {time.Hour, 110, 10, 10}, {5 * time.Hour, 104, 4, 4}, {24 * time.Hour, 90, -10, -14}, {25 * time.Hour, 95, -5, -9}, {366 * 24 * time.Hour, 96, -4, 1}} {
		g.Add(at.Add(s.after), s.value)
		if g.PnL() != s.pnl || g.Day() != s.day {
			t.Errorf("after %v: %v and %v, expected %v and %v", s.after, g.PnL(), g.Day(), s.pnl, s.day)
		}
		steps++
	}
	if steps != 6 {
		t.Errorf("%d steps", steps)
	}
}
