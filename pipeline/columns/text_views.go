package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// textViews are texts in the layout of Arrow's string views: short ones are in their views,
// others are in memory that never moves. So texts are added without copying those before.
type textViews struct {
	views   []arrow.ViewHeader
	buffers []*memory.Buffer // that the views point into
	free    []byte           // the rest of the last buffer of copied texts
	copied  int              // bytes
}

// A buffer of copied texts has as many bytes as those before, within these bounds.
const minTextBuffer, maxTextBuffer = 1 << 10, 1 << 20

// add adds a text.
func (t *textViews) add(text string) {
	var v arrow.ViewHeader
	v.SetString(text)
	if !v.IsInline() {
		v.SetIndexOffset(t.copy(text))
	}
	t.views = append(t.views, v)
}

// copy copies a text, and returns the buffer and where it is in there.
func (t *textViews) copy(text string) (buffer, offset int32) {
	if len(text) > len(t.free) {
		t.free = make([]byte, max(len(text), min(max(t.copied, minTextBuffer), maxTextBuffer)))
		t.buffers = append(t.buffers, memory.NewBufferBytes(t.free))
	}
	last := len(t.buffers) - 1
	offset = int32(t.buffers[last].Len() - len(t.free))
	t.free = t.free[copy(t.free, text):]
	t.copied += len(text)
	return int32(last), offset
}

// at returns a text.
func (t *textViews) at(i int) []byte {
	v := &t.views[i]
	if v.IsInline() {
		return v.InlineBytes()
	}
	from := v.BufferOffset()
	return t.buffers[v.BufferIndex()].Bytes()[from : int(from)+v.Len()]
}

// array is the texts so far, with a bitmap of those that are not null. It does not change when
// others are added.
func (t *textViews) array(valid []byte) arrow.Array {
	buffers := []*memory.Buffer{memory.NewBufferBytes(valid), memory.NewBufferBytes(arrow.ViewHeaderTraits.CastToBytes(t.views))}
	data := array.NewData(arrow.BinaryTypes.StringView, len(t.views), append(buffers, t.buffers...), nil, array.UnknownNullCount, 0)
	defer data.Release()
	return array.NewStringViewData(data)
}
