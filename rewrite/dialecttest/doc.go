// Package dialecttest holds what every dialect has to pass, in one place: a dialect joins by calling it from its tests.
package dialecttest
