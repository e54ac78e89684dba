package secretfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// Without files a client trusts the system's authorities; one that cannot be read is an error now.
func TestClient(t *testing.T) {
	if c, err := secretfile.Client("", "", ""); err != nil || c.RootCAs != nil || c.GetClientCertificate != nil {
		t.Errorf("%v %v", c, err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ ca, cert, key, says string }{
		{"/nothing", "", "", "ca: open /nothing"}, {text, "", "", "ca: " + text + " has no certificate in PEM"}, {"", text, "/there", "cert " + text + " with key /there: "},
	} {
		if _, err := secretfile.Client(x.ca, x.cert, x.key); err == nil || !strings.HasPrefix(err.Error(), x.says) {
			t.Errorf("%v, expected %q", err, x.says)
		}
	}
}
