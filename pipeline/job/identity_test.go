package job

import (
	"reflect"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
)

// TestIdentityOfNames: names are part of a job, however it gives them; and a job without
// other names is the job that it was before there were such.
func TestIdentityOfNames(t *testing.T) {
	const before = `{"operation":"email_to_hem","inputs":null,"id_column":"email","input_columns":["Record ID","email"],"drop_identifier":false,"rows_per_part":1000000,"compression":"snappy","hems":["hem_md5","hem_sha1","hem_sha256"],"schema_version":`
	kept := []string{"Record ID", "email"}
	encode := func(change func(*Job)) (settings, id string) {
		j := Default(resolution.EmailToHEM)
		change(&j)
		layout, err := j.Layout(kept, Source{})
		if err != nil {
			t.Fatal(err)
		}
		encoded, id, err := NewIdentity(j, Columns{Read: kept, Kept: len(kept), Identifier: 1, Layout: layout}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded), id
	}
	rename := func(old, name string) func(*Job) {
		return func(j *Job) { j.Renames = append(j.Renames, columns.Rename{Old: old, New: name}) }
	}
	plain, id := encode(func(*Job) {})
	if versions, same := strings.CutPrefix(plain, before); !same || strings.Count(versions, ":") != 1 {
		t.Errorf("a job without other names is %s", plain)
	}
	if _, same := encode(rename("email", "email")); same != id {
		t.Error("a name that stays is another job")
	}
	snake, snakeID := encode(func(j *Job) { j.SnakeNames = true })
	if _, same := encode(rename("Record ID", "record_id")); snakeID == id || same != snakeID {
		t.Errorf("%s, and renamed %s", snake, same)
	}
	if _, other := encode(rename("Record ID", "crm_id")); other == id || other == snakeID {
		t.Error("another name is the same job")
	}
	if got := Differences([]byte(plain), []byte(snake)); !strings.Contains(got, "--rename was not set and is Record ID=record_id") {
		t.Error(got)
	}
}

// TestEverySettingHasAName: a difference in any setting of an identity is told by a name.
func TestEverySettingHasAName(t *testing.T) {
	told := map[string]bool{"inputs": true} // one by one
	for _, s := range settingNames {
		told[s.field] = true
	}
	fields := reflect.TypeFor[Identity]()
	for i := range fields.NumField() {
		if name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ","); !told[name] {
			t.Errorf("%s has no name in settingNames", name)
		}
	}
}
