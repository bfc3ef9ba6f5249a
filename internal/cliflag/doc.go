// Package cliflag holds values of command-line flags that the flag package
// does not have (limits, ages, days, networks, name=value lists), YAML files
// that set flags, and suggestions for mistyped names.
package cliflag
