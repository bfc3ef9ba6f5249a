// Package arch holds no code: its tests check the structure of the tree.
//
// Imports point downwards only. From the ground up:
//
//	internal    imports internal
//	transforms  imports internal
//	resolution  imports nothing of ours: it says what, not how
//	resolution/…  imports resolution, transforms, internal
//	sources     imports internal, and its own folders
//	sinks       imports internal, and its own folders
//	pipeline    imports sources, sinks, transforms, resolution, internal, and its own folders
//	cmd         imports everything; it is where parts meet. testdata is the
//	            sample directory, which it has with it
//
// Siblings do not import each other, except a few leaf packages. The rooms of pipeline are in
// an order, and each may import those before it. A folder does
// not import its parent folder, except resolution. Nothing registers itself:
// there is no func init, and no package of ours is imported for its side
// effects. Every package has a package comment. Tests may import anything,
// because they wire parts together.
package arch
