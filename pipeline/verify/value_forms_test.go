package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
)

// TestFormsOfAllColumnsAreKnown: a form that nothing is checked by would be a
// promise that no code keeps.
func TestFormsOfAllColumnsAreKnown(t *testing.T) {
	for _, op := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		for _, c := range columns.Every(op, nil, nil) {
			form := c.Meaning.Form
			if form != "" && textForms[form] == nil && numberForms[form] == nil && floatForms[form] == nil && !strings.HasPrefix(form, wordsForm) {
				t.Errorf("%s of %s: form %q", c.Name, op, form)
			}
		}
	}
}
