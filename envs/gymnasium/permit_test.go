package gymnasium

import (
	"context"
	"strings"
	"testing"
)

// TestPermission: what is not permitted is refused before an interpreter is started; Python need not
// be there.
func TestPermission(t *testing.T) {
	t.Setenv("ONNXRL_PYTHON", "/nothing/python")
	adapter := Adapter{Source: []byte("pass")}
	for _, c := range []struct {
		p          Permission
		python, id string
		adapter    Adapter
		want       string // "" where the interpreter is looked for
	}{
		{Permission{}, "", "CartPole-v1", Adapter{}, ""},
		{Permission{}, "python3", "CartPole-v1", Adapter{}, `python: the server does not permit the interpreter "python3"`},
		{Permission{Interpreters: []string{"/nothing/python"}}, "/nothing/python", "CartPole-v1", Adapter{}, ""},
		{Permission{}, "", "os:CartPole-v1", Adapter{}, `id: the server does not permit the module "os" (python.modules of its configuration), expected none`},
		{Permission{}, "", "mpe2.simple_v3", adapter, `the module "mpe2.simple_v3"`},
		{Permission{Modules: []string{"mpe2"}}, "", "mpe2.simple_v3", adapter, ""},
		{Permission{Modules: []string{"mpe"}}, "", "mpe2.simple_v3", adapter, "expected one of mpe"},
		{Permission{Modules: []string{"mpe2.simple_v3", "mine"}}, "", "mine:A-v0", Adapter{}, ""},
	} {
		name, value, _ := strings.Cut(c.p.Variable(), "=")
		t.Setenv(name, value)
		cfg := Defaults()
		cfg.ID, cfg.Python = c.id, c.python
		_, err := OpenAdapted(context.Background(), cfg, c.adapter)
		want := c.want
		if want == "" {
			want = errNoPython.Error()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %s, %s: %v, expected %q", c.p, c.python, c.id, err, want)
		}
	}
	t.Setenv(PermissionVariable, "{")
	cfg := Defaults()
	cfg.ID = "CartPole-v1"
	if _, err := Open(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), PermissionVariable) {
		t.Errorf("a variable that cannot be read: %v", err)
	}
}
