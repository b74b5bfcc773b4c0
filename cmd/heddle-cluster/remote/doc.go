// Package remote runs the nodes of a job in processes of their own, connected through a NATS server: one that control
// starts, on the loopback, or a user's.
//
// Every receiver has a subject of its own. NATS keeps the order of what one connection publishes, and may lose what
// was sent to somebody who is gone or much too slow; so each sender numbers its frames, on each of its two ways, for
// what is large and for the rest, and the receiver drops those that it has and ends when one is missing. A message takes
// one or more frames, each with a checksum.
//
// An application of one's own gets worker processes by calling cli.MainOn with Processes{} in place of cli.Main.
package remote
