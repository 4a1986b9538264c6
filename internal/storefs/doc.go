// Package storefs is what the two stores of one folder, package capture and package training below it, ask of the file system in the same way:
// which ids are file names, which file a descriptor has open, and how content and names become durable. It knows nothing of what is in the files.
package storefs
