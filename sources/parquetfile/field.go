package parquetfile

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// field is a top-level column.
type field struct {
	name   string
	root   *node
	leaves []*leaf
}

// node is a column or a part of a nested one.
type node struct {
	name     string
	kind     kind
	defined  int // a lower definition level means null
	children []*node
	first    *leaf // the first leaf; a value has only this one
	leaves   []*leaf

	// of lists
	hasItem int // a lower definition level means an empty list
	again   int // the repetition level of every item but the first
}

type kind uint8

const (
	valueNode kind = iota
	structNode
	listNode
)

// newField makes a field from a top-level column of the schema.
func newField(e *element, memory *budget) (*field, error) {
	b := builder{memory}
	root, err := b.node(e)
	if err != nil {
		return nil, err
	}
	if root.first == nil {
		return nil, &unsupportedError{"a struct without members"}
	}
	return &field{name: e.Name, root: root, leaves: root.leaves}, nil
}

type builder struct{ memory *budget }

// node makes a node from an element. Source: Apache Parquet format, "Nested
// Types", including the older forms of lists.
func (b builder) node(e *element) (*node, error) {
	if e.RepetitionType.V == format.Repeated {
		item, err := b.content(e)
		return list(e.Name, e.defined-1, e, item), err
	}
	return b.content(e)
}

// content makes a node from e. It ignores that e may be repeated.
func (b builder) content(e *element) (*node, error) {
	if e.Type.Valid {
		l, err := newLeaf(e, b.memory)
		return &node{name: e.Name, kind: valueNode, defined: e.defined, first: l, leaves: []*leaf{l}}, err
	}
	if _, variant := e.LogicalType.Value.(*format.VariantType); variant {
		return nil, &unsupportedError{"type VARIANT"}
	}
	if e.isMap() {
		inner := e.children[0]
		item, err := b.content(inner)
		if err != nil {
			return nil, err
		}
		for i, name := range []string{"key", "value"}[:min(2, len(item.children))] {
			item.children[i].name = name
		}
		return list(e.Name, e.defined, inner, item), nil
	}
	if e.isList() {
		inner := e.children[0]
		wrapped := len(inner.children) == 1 && inner.Name != "array" && inner.Name != e.Name+"_tuple"
		if wrapped {
			item, err := b.node(inner.children[0])
			return list(e.Name, e.defined, inner, item), err
		}
		item, err := b.content(inner)
		return list(e.Name, e.defined, inner, item), err
	}
	made := &node{name: e.Name, kind: structNode, defined: e.defined}
	for _, member := range e.children {
		child, err := b.node(member)
		if err != nil {
			return nil, err
		}
		made.children = append(made.children, child)
		made.leaves = append(made.leaves, child.leaves...)
	}
	if len(made.leaves) > 0 {
		made.first = made.leaves[0]
	}
	return made, nil
}

// list makes a list from the repeated element's items.
func list(name string, defined int, repeated *element, item *node) *node {
	if item == nil {
		return nil
	}
	return &node{name: name, kind: listNode, defined: defined, hasItem: repeated.defined, again: repeated.repeated,
		children: []*node{item}, first: item.first, leaves: item.leaves}
}

// isList reports whether a group has the annotation and the shape of a list.
func (e *element) isList() bool {
	_, list := e.LogicalType.Value.(*format.ListType)
	return (list || e.converted(deprecated.List)) && e.hasOneRepeated()
}

// isMap reports whether a group has the annotation and the shape of a map.
func (e *element) isMap() bool {
	_, annotated := e.LogicalType.Value.(*format.MapType)
	annotated = annotated || e.converted(deprecated.Map) || e.converted(deprecated.MapKeyValue)
	return annotated && e.hasOneRepeated() && !e.children[0].Type.Valid
}

func (e *element) hasOneRepeated() bool {
	return len(e.children) == 1 && e.children[0].RepetitionType.V == format.Repeated
}

func (e *element) converted(to deprecated.ConvertedType) bool {
	return e.ConvertedType.Valid && e.ConvertedType.V == to
}

// open starts reading the field in a row group.
func (f *field) open(in io.ReaderAt, size int64, group *format.RowGroup) error {
	for _, l := range f.leaves {
		if err := l.open(in, size, group); err != nil {
			return err
		}
	}
	return nil
}

// finish checks that a row group has no values beyond its rows.
func (f *field) finish() error {
	for _, l := range f.leaves {
		more, err := l.more()
		if err != nil {
			return err
		}
		if more {
			return fmt.Errorf("%w: there are values after the last row", errCounts)
		}
	}
	return nil
}

func (f *field) close() {
	for _, l := range f.leaves {
		l.chunk.close()
	}
}

// appendNext appends the field's text in the next row: values as text, lists
// and structs as JSON. present is false for null.
func (f *field) appendNext(dst []byte) (text []byte, present bool, err error) {
	if f.root.kind == valueNode {
		return f.root.first.appendNext(dst)
	}
	for _, l := range f.leaves {
		if err := l.loadRow(); err != nil {
			return dst, false, err
		}
	}
	if f.root.first.level() < f.root.defined {
		return dst, false, nil
	}
	before := len(dst)
	text, err = f.root.appendJSON(dst)
	if err == nil && len(text)-before > maxValue {
		err = errTooLarge
	}
	for _, l := range f.leaves {
		if err == nil && l.at != len(l.entries) {
			err = errLevels
		}
	}
	return text, true, err
}

var errLevels = errors.New("the levels of a nested column contradict each other")

// appendJSON writes the node at the current entry of its leaves, and advances
// the leaves.
func (n *node) appendJSON(dst []byte) ([]byte, error) {
	level := n.first.level()
	if level < n.defined || n.kind == listNode && level < n.hasItem {
		for _, l := range n.leaves {
			l.at++
		}
		if level < n.defined {
			return append(dst, "null"...), nil
		}
		return append(dst, "[]"...), nil
	}
	var err error
	switch n.kind {
	case valueNode:
		if level < 0 {
			return dst, errLevels // the other leaves of the row have more entries
		}
		dst = n.first.appendEntry(dst)
		n.first.at++
		return dst, nil
	case structNode:
		dst = append(dst, '{')
		for i, child := range n.children {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, child.name), ':')
			if dst, err = child.appendJSON(dst); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	dst = append(dst, '[')
	for {
		if dst, err = n.children[0].appendJSON(dst); err != nil {
			return dst, err
		}
		if !n.first.repeats(n.again) {
			return append(dst, ']'), nil
		}
		dst = append(dst, ',')
	}
}
