//go:build unix && !darwin

package main

// rssUnit is what Rusage counts memory in, in bytes.
const rssUnit = 1024
