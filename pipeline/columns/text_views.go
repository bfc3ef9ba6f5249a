package columns

import (
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// textViews are texts in the layout of Arrow's string views: short ones are in their views,
// others are in memory that never moves. So texts are added without copying those before, and
// those of reference data are not copied at all.
type textViews struct {
	views   []arrow.ViewHeader
	buffers []*memory.Buffer // that the views point into
	free    []byte           // the rest of the last buffer of copied texts
	copied  int              // bytes
	outside []byte           // memory with texts that are not copied
	windows int32            // the first buffer of it
}

// A buffer of copied texts has as many bytes as those before, within these bounds.
const minTextBuffer, maxTextBuffer = 1 << 10, 1 << 20

// windowBytes is half of what a view reaches of a buffer. Windows overlap, so that each text is
// in one as a whole.
const windowBytes = 1 << 30

// lend names memory with texts that are not copied.
func (t *textViews) lend(outside []byte) {
	t.outside, t.windows, t.free = outside, int32(len(t.buffers)), nil
	for from := 0; from < len(outside); from += windowBytes {
		t.buffers = append(t.buffers, memory.NewBufferBytes(outside[from:min(len(outside), from+2*windowBytes-1)]))
	}
}

// add adds a text.
func (t *textViews) add(text string) {
	var v arrow.ViewHeader
	v.SetString(text)
	if !v.IsInline() {
		if at, lent := t.lent(text); lent {
			v.SetIndexOffset(t.windows+int32(at/windowBytes), int32(at%windowBytes))
		} else {
			v.SetIndexOffset(t.copy(text))
		}
	}
	t.views = append(t.views, v)
}

// lent returns where a text is in the memory that was lent.
func (t *textViews) lent(text string) (at uintptr, is bool) {
	at = uintptr(unsafe.Pointer(unsafe.StringData(text))) - uintptr(unsafe.Pointer(unsafe.SliceData(t.outside)))
	return at, at < uintptr(len(t.outside))
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
