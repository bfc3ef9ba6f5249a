package resolution

// Texts is a list of texts, one behind the other: text i is Data[Offsets[i]:Offsets[i+1]].
// That is the layout of an Arrow string array.
type Texts struct {
	Data    []byte
	Offsets []int32
}

// Reset makes the list empty.
func (t *Texts) Reset() { t.Data, t.Offsets = t.Data[:0], append(t.Offsets[:0], 0) }

// Len is the number of texts.
func (t *Texts) Len() int { return max(0, len(t.Offsets)-1) }

// Add adds a copy of a text.
func (t *Texts) Add(text []byte) {
	t.Data = append(t.Data, text...)
	t.End()
}

// End ends the text that was appended to Data.
func (t *Texts) End() {
	if len(t.Offsets) == 0 {
		t.Offsets = append(t.Offsets, 0)
	}
	t.Offsets = append(t.Offsets, int32(len(t.Data)))
}

// At returns a text, which is valid until the list changes; nil behind the last.
func (t *Texts) At(i int) []byte {
	if i+1 >= len(t.Offsets) {
		return nil
	}
	return t.Data[t.Offsets[i]:t.Offsets[i+1]]
}

// Pad adds empty texts until there are n.
func (t *Texts) Pad(n int) {
	for t.Len() < n {
		t.End()
	}
}

// Bytes is the length of all texts.
func (t *Texts) Bytes() int {
	if len(t.Offsets) == 0 {
		return 0
	}
	return int(t.Offsets[len(t.Offsets)-1] - t.Offsets[0])
}

// Slice returns the texts in [from, to), in the same memory.
func (t *Texts) Slice(from, to int) Texts { return Texts{t.Data, t.Offsets[from : to+1]} }

// TextTable is distinct texts that codes stand for. It must not change.
type TextTable struct{ Texts }

// code is the code of a text of a small table, its length if it has no such text.
func (t *TextTable) code(text string) int {
	code := 0
	for code < t.Len() && string(t.At(code)) != text {
		code++
	}
	return code
}

// CodedTexts is a column of texts by their code in a table, whose length is the code of
// no text. Without a table it is plain: it has the texts instead, as soon as one of them
// is not in the table.
type CodedTexts struct {
	Table *TextTable
	Codes []int32
	Texts Texts // if plain
}

// Reset makes the column empty.
func (c *CodedTexts) Reset(table *TextTable) {
	if table != nil && table.Len() == 0 {
		table = nil
	}
	c.Table, c.Codes = table, c.Codes[:0]
	c.Texts.Reset()
}

// AddCode adds the text of a code of table.
func (c *CodedTexts) AddCode(table *TextTable, code int32) {
	if c.Table == table {
		c.Codes = append(c.Codes, code)
	} else {
		c.AddText(table.At(int(code)))
	}
}

// AddText adds a copy of a text.
func (c *CodedTexts) AddText(text []byte) {
	if c.Table == nil {
		c.Texts.Add(text)
		return
	}
	if len(text) == 0 {
		c.Codes = append(c.Codes, int32(c.Table.Len()))
		return
	}
	c.Unfold()
	c.Texts.Add(text)
}

// Unfold makes the column plain.
func (c *CodedTexts) Unfold() {
	if c.Table == nil {
		return
	}
	for _, code := range c.Codes {
		c.Texts.Add(c.Table.At(int(code)))
	}
	c.Table = nil
}

// Len is the number of texts.
func (c *CodedTexts) Len() int {
	if c.Table == nil {
		return c.Texts.Len()
	}
	return len(c.Codes)
}

// At returns a text, which is valid until the column changes; nil behind the last.
func (c *CodedTexts) At(i int) []byte {
	switch {
	case c.Table == nil:
		return c.Texts.At(i)
	case i < len(c.Codes):
		return c.Table.At(int(c.Codes[i]))
	}
	return nil
}

// bytes is the length of all texts.
func (c *CodedTexts) bytes() int {
	if c.Table == nil {
		return c.Texts.Bytes()
	}
	size, ends := 0, c.Table.Offsets
	for _, code := range c.Codes {
		if i := int(code); i+1 < len(ends) {
			size += int(ends[i+1] - ends[i])
		}
	}
	return size
}

// Pad adds empty texts until there are n.
func (c *CodedTexts) Pad(n int) {
	for c.Len() < n {
		c.AddText(nil)
	}
}

// Set adds a copy of a text as that of row i, behind the last row that has one.
func (c *CodedTexts) Set(i int, text []byte) {
	if len(text) > 0 {
		c.Pad(i)
		c.AddText(text)
	}
}

// copy sets row i to row j of another column.
func (c *CodedTexts) copy(i int, from *CodedTexts, j int) {
	if from.Table == nil || j >= len(from.Codes) || int(from.Codes[j]) == from.Table.Len() {
		c.Set(i, from.At(j))
		return
	}
	c.Pad(i)
	c.AddCode(from.Table, from.Codes[j])
}

// TextLists are lists of texts: those of list i are Texts[Ends[i]] to Texts[Ends[i+1]].
type TextLists struct {
	Ends  []int32
	Texts Texts
}

// Reset makes it empty.
func (l *TextLists) Reset() {
	l.Ends = append(l.Ends[:0], 0)
	l.Texts.Reset()
}

// End ends a list.
func (l *TextLists) End() {
	if len(l.Ends) == 0 {
		l.Ends = append(l.Ends, 0)
	}
	l.Ends = append(l.Ends, int32(l.Texts.Len()))
}

// Len is the number of lists.
func (l *TextLists) Len() int { return max(0, len(l.Ends)-1) }

// Of returns the places in Texts of list i; none behind the last.
func (l *TextLists) Of(i int) (from, to int) {
	if i+1 >= len(l.Ends) {
		return 0, 0
	}
	return int(l.Ends[i]), int(l.Ends[i+1])
}

// Pad adds empty lists until there are n.
func (l *TextLists) Pad(n int) {
	for l.Len() < n {
		l.End()
	}
}

// TypedTexts are lists of texts of which each may have a type, such as work.
type TypedTexts struct {
	TextLists
	Types CodedTexts // of each text; it ends behind the last that is known
}

// Reset makes it empty. types are those that texts usually have, if any.
func (l *TypedTexts) Reset(types *TextTable) {
	l.TextLists.Reset()
	l.Types.Reset(types)
}

// Put adds a copy of a text to list i, which is the last one.
func (l *TextLists) Put(i int, text []byte) {
	l.Pad(i + 1)
	l.Texts.Add(text)
	l.Ends[i+1]++
}

// Put adds a copy of a text to list i, which is the last one.
func (l *TypedTexts) Put(i int, text, kind []byte) {
	l.Types.Set(l.Texts.Len(), kind)
	l.TextLists.Put(i, text)
}

// copy sets list i to list j of another column.
func (l *TextLists) copy(i int, of *TextLists, j int) {
	for n, to := of.Of(j); n < to; n++ {
		l.Put(i, of.Texts.At(n))
	}
}

// copy sets list i to list j of another column.
func (l *TypedTexts) copy(i int, of *TypedTexts, j int) {
	for n, to := of.Of(j); n < to; n++ {
		l.Types.copy(l.Texts.Len(), &of.Types, n)
		l.TextLists.Put(i, of.Texts.At(n))
	}
}

// bytes is about the length of list i.
func (l *TextLists) bytes(i int) (n int) {
	from, to := l.Of(i)
	if from < to {
		n = int(l.Texts.Offsets[to] - l.Texts.Offsets[from])
	}
	return n
}

func (l *TypedTexts) bytes(i int) int {
	size := l.TextLists.bytes(i)
	from, to := l.Of(i)
	for n := from; n < to; n++ {
		size += len(l.Types.At(n))
	}
	return size
}

func (l *TypedTexts) allBytes() int { return l.Texts.Bytes() + l.Types.bytes() }
