package cliflag

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/leadetl/leadetl/internal/yamltree"
)

// Tree is a value of a settings file: a text, a list, or keys with values. The zero Tree is of a key
// that the file does not have. It is the same after JSON.
type Tree struct {
	Text    string   `json:"text,omitempty"` // with variables replaced
	List    []Tree   `json:"list,omitzero"`
	Members []Member `json:"members,omitzero"`
	// File and Line are where it is written.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Member is a key with its value, in the order of the file.
type Member struct {
	Key   string `json:"key"` // with variables replaced
	Value Tree   `json:"value"`
}

// IsSet reports whether the file has the value.
func (t Tree) IsSet() bool { return t.Line > 0 }

// Errorf is an error about the value, with its place if it is in a file.
func (t Tree) Errorf(format string, args ...any) error {
	if t.File == "" {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("%s:%d: "+format, append([]any{t.File, t.Line}, args...)...)
}

// Path is the text as a path: one that begins with ./ is relative to the file's folder.
func (t Tree) Path() string {
	if strings.HasPrefix(t.Text, "./") {
		return filepath.Join(filepath.Dir(t.File), t.Text)
	}
	return t.Text
}

// Value is the text. what says what it is.
func (t Tree) Value(what string) (string, error) {
	if t.Text == "" || t.List != nil || t.Members != nil {
		return "", t.Errorf("%s is one value", what)
	}
	return t.Text, nil
}

// Values is a list of texts, or one text.
func (t Tree) Values(what string) (texts []string, err error) {
	if t.List == nil {
		text, err := t.Value(what)
		return []string{text}, err
	}
	for _, item := range t.List {
		text, bad := item.Value("each entry of " + what)
		texts, err = append(texts, text), errors.Join(err, bad)
	}
	return texts, err
}

// tree reads a value. Its problems are noted.
func (f *settingsFile) tree(n *yamltree.Node) (t Tree) {
	t.File, t.Line = f.path, int(n.Line)
	switch n.Kind {
	case yamltree.List:
		t.List = []Tree{}
		for _, item := range n.Items {
			t.List = append(t.List, f.tree(item))
		}
	case yamltree.Map:
		t.Members = []Member{}
		for i, member := range n.Items {
			if n.IsRepeated(i) {
				f.fail(member, "%s is given twice; leave one of them out", member.Name)
			}
			name, err := expand(member.Name)
			if err != nil {
				f.fail(member, "%v", err)
			}
			t.Members = append(t.Members, Member{name, f.tree(member)})
		}
	default:
		text, err := scalar(n)
		if err == nil {
			t.Text, err = expand(text)
		}
		if err != nil {
			f.fail(n, "%v", err)
		}
	}
	return t
}
