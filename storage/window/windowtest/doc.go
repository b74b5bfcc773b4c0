// Package windowtest compares stores of windows with maps: whatever is done to a store at random, with
// whatever memory, it has what a map has, in the order that package window promises. It is for tests
// of stores, those of package window and others.
package windowtest
