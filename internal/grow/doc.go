// Package grow appends to what may become long. Memory grows by doubling, which leaves behind as much as there is in the end; append, which from a few
// hundred bytes on grows by a quarter at a time, leaves four times that.
package grow
