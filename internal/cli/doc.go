// Package cli holds the commands of rolltap besides serve, one file each, and the plumbing that reads settings.
//
// A command is a struct whose tags kong reads and whose Run does the work with a Console. Results go to Console.Out and
// nothing else does, so that every command can stand in a pipe. What a command prints about a store is hostile by nature,
// since models, tools and web pages wrote it: all of it goes through inert, which leaves nothing that a terminal obeys.
//
// Settings reads a flag from the command line, the environment, a YAML file and its default, in this order, and collects
// every problem instead of stopping at the first.
//
// The package knows the store (capture) and the embedded model; it does not know the proxy, which demo is handed as a
// function, and it neither logs nor reads the process environment.
package cli
