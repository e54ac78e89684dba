package run

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// noteGrowth says which values of an agent's configuration follow the length of a run that is
// resumed with more env steps than it had: they go on where the longer run would have them.
func (p *Plan) noteGrowth() error {
	_, changes, err := ChangesSince(p.kinds, p.dir, p.cfg)
	if err != nil {
		return fmt.Errorf("resume %s: %w", filepath.Clean(p.dir), err)
	}
	i := slices.IndexFunc(changes, func(c configs.Change) bool { return c.Path == "train.total_env_steps" })
	if i < 0 {
		return nil
	}
	if list := lengthDependent(reflect.ValueOf(p.maker.Config()), "agent"); len(list) > 0 {
		p.note("note: the run grows from %s to %s env steps; what is relative to its length is now relative to the new one: %s", changes[i].Old, changes[i].New, strings.Join(list, ", "))
	}
	return nil
}

// lengthDependent lists the key paths below a configuration whose values depend on the length of a
// run: schedules without a length of their own, and DQN's exploration.
func lengthDependent(v reflect.Value, path string) (list []string) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	if s, ok := v.Interface().(optim.Schedule); ok {
		if s.Lasting() {
			return []string{path}
		}
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		below := path
		if key != "" {
			below = path + "." + key
		}
		if key == "exploration_fraction" {
			list = append(list, below)
			continue
		}
		list = append(list, lengthDependent(v.Field(i), below)...)
	}
	return list
}
