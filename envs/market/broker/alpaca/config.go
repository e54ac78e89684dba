package alpaca

import (
	"net"
	"net/url"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Paper is the address of the paper account.
const Paper = "https://paper-api.alpaca.markets"

// The environment variables of the key.
const (
	KeyVariable    = "APCA_API_KEY_ID"
	SecretVariable = "APCA_API_SECRET_KEY"
)

// Config is the section of the broker.
type Config struct {
	// URL is the address, without /v2: that of the paper account, or of a double on this machine.
	URL string `yaml:"url"`
	// RealMoney allows another address than those, by https.
	RealMoney bool `yaml:"real_money,omitzero"`
	// Timeout is how long one request may take.
	Timeout time.Duration `yaml:"timeout"`
	// Attempts is how often a request is made that gets no answer.
	Attempts int `yaml:"attempts"`
	// Pause is the wait before the second request, which doubles up to MaxPause.
	Pause    time.Duration `yaml:"pause"`
	MaxPause time.Duration `yaml:"max_pause"`
}

// Defaults returns the defaults.
func Defaults() Config {
	return Config{URL: Paper, Timeout: 10 * time.Second, Attempts: 8, Pause: 250 * time.Millisecond, MaxPause: 15 * time.Second}
}

// Validate reports what is wrong.
func (c Config) Validate() error {
	var p configs.Problems
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Path != "" && u.Path != "/") {
		// The address is not repeated: somebody may have put a password into it.
		p.Addf("url", "expected an address such as %s, without a path, a query or a password", Paper)
	} else {
		loopback := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
		paper := u.Scheme == "https" && u.Host == "paper-api.alpaca.markets"
		switch {
		case u.Scheme != "https" && (u.Scheme != "http" || !loopback):
			p.Addf("url", "%s: expected https", c.URL)
		case !paper && !loopback && !c.RealMoney:
			p.Addf("url", "%s may be an account of real money: expected %s or an address of this machine, or real_money: true", c.URL, Paper)
		case (paper || loopback) && c.RealMoney:
			p.Addf("real_money", "%s has none", c.URL)
		}
	}
	p.Check(c.Timeout > 0, "timeout", "%v, expected more than 0", c.Timeout)
	p.Check(c.Attempts >= 1 && c.Attempts <= 100, "attempts", "%d, expected 1 to 100", c.Attempts)
	p.Check(c.Pause > 0, "pause", "%v, expected more than 0", c.Pause)
	p.Check(c.MaxPause >= c.Pause, "max_pause", "%v, expected at least pause, %v", c.MaxPause, c.Pause)
	return p.Err()
}
