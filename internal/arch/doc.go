// Package arch checks the shape of the code: which package may import which,
// what only few may use, how long functions and files get, and that each package
// says what it is. It has tests only.
package arch
