// Package provider is the language of provider files, and the client that asks a provider by its
// entry. An entry says how an HTTP API of others is asked and what its answers mean: request, key,
// batches, prices, rules for answers, and where the values of columns are.
//
// The one thing to know before using it: an answer that fits no rule is Unknown, which means that
// it may have been billed. Nothing here guesses.
package provider
