// Package engine runs applications: it forms batches of events, takes each
// through planning, linking, execution, results and installation, and keeps the
// account of it.
//
//	metrics, err := engine.Run(ctx, app, source, engine.Options{})
//
// # The life of a batch
//
//	source --> feed --> plan --> link --> execute --> emit --> install --> sinks
//	                   [regions] [shards] [strategy] [regions] [shards]
//
// Each bracketed step is shared out among the workers; between steps they meet.
// Under the serial strategy one goroutine does all of it, event by event,
// without a graph. While a batch executes under a graph, workers that run out
// of ready operations plan the next batch, if the source has it: planning
// depends on events alone.
//
// # Punctuations
//
// A batch is closed when it has Options.Batch events; when the source has
// nothing more for now, without Options.Linger; or Linger after its first event.
//
// # What ends a run
//
// The end of the source; a cancelled context, after the batch in hand; an error
// of the source; or a panic of a user function that a serial run would have met
// too: then all events before it are committed and their results delivered, and
// the error is a [PanicError].
package engine
