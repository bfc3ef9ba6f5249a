package request

import "unicode/utf8"

// metadata checks the free-form member of a creation: an object of scalars.
// Problems name the key, so one that is too long to be named stands for the
// whole object.
func (f *form) metadata() {
	const name = "metadata"
	v := f.optional(name, objectKind)
	if v == "" {
		return
	}
	if v.count() > f.limits.MetadataKeys {
		f.problem("/"+name, "too_many", "must have at most %d keys", f.limits.MetadataKeys)
		return
	}
	v.each(func(key string, v value) {
		if utf8.RuneCountInString(key) > f.limits.MetadataName {
			f.problem("/"+name, "name_too_long", "must have keys of at most %d characters", f.limits.MetadataName)
			return
		}
		switch v.kind() {
		case objectKind, arrayKind:
			f.problem(pointer("/"+name, key), "wrong_type", "must be a string, a number, true, false or null")
		case stringKind:
			if utf8.RuneCountInString(v.text()) > f.limits.MetadataText {
				f.problem(pointer("/"+name, key), "too_long", "must have at most %d characters", f.limits.MetadataText)
			}
		}
	})
}
