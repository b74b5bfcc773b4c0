// Package plan describes a job: an immutable graph of vertices and edges with typed
// properties, and the passes that make an efficient plan of what a user wrote. The idea is
// Apache Nemo's (Yang, Eo, Jeong and others, USENIX ATC 2019).
//
// A vertex is an operator, an edge says whose output goes where. What an operator computes
// is nobody's business here: a [Vertex] carries it along. How it is computed is told by
// properties, such as how many partitions a vertex has or whether two vertices run in one
// task: a [Prop] has a type, a default and a meaning.
//
// A pass does one of two things. An [Annotator] sets properties: it gets a [View], which has
// no way to change the graph. A [Reshaper] changes the graph: it gets a [Shaper], which
// has no way to set a property, and only such changes as keep the results the same: to put a utility
// vertex on an edge, to take it away again, to make one vertex of two that compute the same. So
// any sequence of passes leaves the results of the job as they were; [Check] looks after each one
// whether the graph can be executed.
//
// A [Policy] is a list of passes. It is refused if a pass needs a property that none before
// it sets. A property that one pass fixed and another one sets differently is an error that names
// both. A plan remembers which pass set what: see [Graph.Explain].
package plan
