package gymnasium

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Permission is what documents may name, where a process opens those of others. The JSON keys are
// those of the variable [PermissionVariable].
type Permission struct {
	// Interpreters are the values that the key python may have beside the empty one.
	Interpreters []string `json:"interpreters"`
	// Modules are the modules, and packages with all that they contain, that an id may have
	// imported. An id without a module is one that Gymnasium itself has registered.
	Modules []string `json:"modules"`
}

// PermissionVariable is the environment variable that limits what a process, and all that it starts,
// may open: a [Permission] as JSON. Without it everything is permitted.
const PermissionVariable = "ONNXRL_PYTHON_PERMITTED"

// Variable is the environment's entry that limits a process.
func (p Permission) Variable() string {
	text, _ := json.Marshal(p) // Strings always can be.
	return PermissionVariable + "=" + string(text)
}

// checkPermitted reports what this process does not permit.
func checkPermitted(c Config) error {
	text, ok := os.LookupEnv(PermissionVariable)
	if !ok {
		return nil
	}
	var p Permission
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("$%s: %w", PermissionVariable, err)
	}
	if c.Python != "" && !slices.Contains(p.Interpreters, c.Python) {
		return fmt.Errorf("python: the server does not permit the interpreter %q (python.interpreters of its configuration), expected %s", c.Python, oneOf(p.Interpreters))
	}
	module := c.module()
	if module != "" && !slices.ContainsFunc(p.Modules, func(m string) bool { return m == module || strings.HasPrefix(module, m+".") }) {
		return fmt.Errorf("id: the server does not permit the module %q (python.modules of its configuration), expected %s", module, oneOf(p.Modules))
	}
	return nil
}

// module is what an id has imported.
func (c Config) module() string {
	if len(c.adapter.Source) > 0 {
		return c.ID
	}
	module, _, found := strings.Cut(c.ID, ":")
	if !found {
		return ""
	}
	return module
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "one of " + strings.Join(names, ", ")
}
