// Package invisible recognizes characters that show nothing. Text copied from pages,
// chats and spreadsheets has them around and inside values.
package invisible

import "unicode"

// Is reports whether c is a format character, such as a byte order mark or a bidi mark,
// or another one that programs show as nothing: variation selectors, fillers, tags.
// Source: Unicode, Default_Ignorable_Code_Point.
func Is(c rune) bool {
	return c >= 0xAD && unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
