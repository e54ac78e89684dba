package alpaca

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

var _ broker.Broker = (*Client)(nil)

// Real money needs a word of its own.
func TestAddresses(t *testing.T) {
	cases := 0
	for _, x := range []struct {
		url  string
		real bool
		want string
	}{
		{Paper, false, ""},
		{Paper + "/", false, ""},
		{Paper, true, "real_money"},
		{"http://127.0.0.1:8080", false, ""},
		{"http://[::1]:8080", false, ""},
		{"http://localhost:1", false, ""},
		{"https://api.alpaca.markets", false, "real money"},
		{"https://api.alpaca.markets", true, ""},
		{"http://api.alpaca.markets", true, "https"},
		{"http://paper-api.alpaca.markets", false, "https"},
		{"https://paper-api.alpaca.markets.example.org", false, "real money"},
		{"https://localhost.example.org", false, "real money"},
		{"https://paper-api.alpaca.markets/v2", false, "without a path"},
		{"https://user:hidden@paper-api.alpaca.markets", false, "password"},
		{"", false, "expected an address"},
	} {
		c := Defaults()
		c.URL, c.RealMoney = x.url, x.real
		err := c.Validate()
		if (err == nil) != (x.want == "") || err != nil && (!strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%s, real %v: %v, expected %q", x.url, x.real, err, x.want)
		}
		cases++
	}
	if cases != 15 {
		t.Errorf("%d cases", cases)
	}
}

func TestKeyIsNeeded(t *testing.T) {
	t.Setenv(KeyVariable, "something")
	t.Setenv(SecretVariable, "")
	if _, err := New(Defaults(), nil); err == nil || !strings.Contains(err.Error(), SecretVariable) || strings.Contains(err.Error(), "something") {
		t.Error(err)
	}
}
