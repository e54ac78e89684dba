package livetrade

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// Alerts names the receivers of risk events, besides the sink and the log.
type Alerts struct {
	// Webhook is a URL that each is posted to as JSON: https, or http of this machine. A URL that
	// is a secret by itself belongs into the file WebhookFile.
	Webhook     string `yaml:"webhook,omitzero"`
	WebhookFile string `yaml:"webhook_file,omitzero"`
	// TokenFile has the bearer token that goes with each, or the environment variable TokenEnv.
	TokenFile string `yaml:"token_file,omitzero"`
	TokenEnv  string `yaml:"token_env,omitzero"`
	// Timeout is how long an attempt may take.
	Timeout time.Duration `yaml:"timeout,omitzero"`
	// GiveUp is for how long one is tried again, from when it happened.
	GiveUp time.Duration `yaml:"give_up,omitzero"`
	// Queue is how many may wait; where there are more, the oldest are left out.
	Queue int `yaml:"queue,omitzero"`
}

// DefaultAlerts returns the defaults, which tell nobody.
func DefaultAlerts() Alerts {
	return Alerts{Timeout: 10 * time.Second, GiveUp: time.Hour, Queue: 1000}
}

// To reports whether there is a webhook.
func (a Alerts) To() bool { return a.Webhook != "" || a.WebhookFile != "" }

// Validate reports what is wrong with the fields. It does not say what the URL is.
func (a Alerts) Validate() error {
	var p configs.Problems
	if a.Webhook != "" {
		if _, err := endpoint(a.Webhook); err != nil {
			p.Addf("webhook", "%v", err)
		}
	}
	p.Check(a.Webhook == "" || a.WebhookFile == "", "webhook_file", "expected it or webhook, not both")
	p.Check(a.To() || a.TokenFile == "" && a.TokenEnv == "", "webhook", "is missing")
	p.Check(a.TokenFile == "" || a.TokenEnv == "", "token_env", "expected it or token_file, not both")
	p.Check(a.Timeout > 0 && a.Timeout <= time.Minute, "timeout", "%v, expected a duration up to 1m", a.Timeout)
	p.NonNegative("give_up", a.GiveUp)
	p.Check(a.Queue >= 2 && a.Queue <= 100_000, "queue", "%d, expected 2 to 100000 alerts", a.Queue)
	return p.Err()
}

// Endpoint is the URL of the webhook, from where it is. No error tells more of it than its host.
func (a Alerts) Endpoint() (*url.URL, error) {
	if a.WebhookFile == "" {
		u, err := endpoint(a.Webhook)
		if err != nil {
			return nil, fmt.Errorf("alerts.webhook: %w", err)
		}
		return u, nil
	}
	text, err := os.ReadFile(a.WebhookFile)
	if err != nil {
		return nil, fmt.Errorf("alerts.webhook_file: %w", err)
	}
	u, err := endpoint(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("alerts.webhook_file: %s: %w", a.WebhookFile, err)
	}
	return u, nil
}

// Token is the bearer token, from where it is; empty for none.
func (a Alerts) Token() (string, error) {
	token, err := secretfile.FileOrVariable(a.TokenFile, a.TokenEnv)
	if err != nil {
		key := "token_file"
		if a.TokenFile == "" {
			key = "token_env"
		}
		return "", fmt.Errorf("alerts.%s: %w", key, err)
	}
	return token, nil
}

// endpoint reads the URL of a webhook. The path may be a secret, and so may what cannot be read.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" {
		return nil, errors.New("expected the URL of a receiver, such as https://hooks.example.com/alerts")
	}
	if u.User != nil {
		return nil, errors.New("expected a URL without a user and a password; token_file and token_env have the token")
	}
	ip := net.ParseIP(u.Hostname())
	here := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !here) {
		return nil, fmt.Errorf("a receiver at %s: expected https, or http of this machine", u.Host)
	}
	u.Fragment = ""
	return u, nil
}
