package operators

import "github.com/heddle-stream/heddle/plan"

// RelayOf returns an operator that hands on what a vertex puts out: for passes that put a vertex
// on an edge behind it.
func RelayOf(v plan.Vertex) any { return v.Op.(operator).relay() }

func (emits[T]) relay() any { return &relayOp[T]{} }

type relayOp[T any] struct{ emits[T] }

func (op *relayOp[T]) build(_ *task, out any) []any { return []any{out} }
