package configs

import (
	"errors"
	"reflect"
)

// Check reports all problems of a document or section that is decoded over these defaults, those of
// the kinds that it names included, in the order of lines. Nothing is opened.
func (b *Book) Check(s Section, defaults any) Errors {
	into := reflect.New(reflect.TypeOf(defaults))
	into.Elem().Set(reflect.ValueOf(defaults))
	errs := asErrors(s, s.Decode(into.Interface()))
	errs = append(errs, b.checkKinds(s, Keys(defaults))...)
	errs.Sort()
	return errs
}

func (b *Book) checkKinds(s Section, keys []Key) (errs Errors) {
	for _, k := range keys {
		errs = append(errs, b.checkKinds(s, k.Keys)...)
		list, section := k.Field.Tag.Get("kinds"), k.Field.Tag.Get("section")
		at, ok := s.Lookup(k.Path)
		if !ok || at.IsZero() || list == "" && section == "" {
			continue
		}
		var kind *Kind
		if several := []Section{}; k.Field.Type.Kind() == reflect.Slice {
			if kind = b.find(section, ""); kind != nil && at.Decode(&several) == nil {
				for _, one := range several {
					errs = append(errs, b.Check(one, kind.Defaults())...)
				}
			}
			continue
		}
		if list != "" {
			var named Kinded
			if at.Decode(&named) != nil || named.Kind == "" {
				continue // which decoding the whole has reported
			}
			if kind = b.find(list, named.Kind); kind == nil {
				errs = append(errs, asErrors(at, named.Unknown(b.names(list)))...)
				continue
			}
			at = named.Section
		} else {
			var raw Section
			if kind = b.find(section, ""); kind == nil || at.Decode(&raw) != nil || raw.IsZero() {
				continue
			}
		}
		if kind.Defaults != nil {
			errs = append(errs, b.Check(at, kind.Defaults())...)
		}
	}
	return errs
}

// asErrors returns an error's problems with their places.
func asErrors(at Section, err error) Errors {
	var list Errors
	switch {
	case err == nil:
	case errors.As(err, &list):
	default:
		errors.As(at.Errorf("", "%v", err), &list)
	}
	return list
}
