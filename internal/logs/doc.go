// Package logs writes log lines without ever making who logs wait. A line is handed over in memory; one goroutine writes what has gathered. When
// the other end does not take it, a pipe that nobody reads for example, lines are dropped and counted, and the traffic goes on. It knows nothing of
// what is in a line.
package logs
