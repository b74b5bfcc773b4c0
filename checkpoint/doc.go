// Package checkpoint keeps what a run has done in a state directory, so that a run
// that was killed goes on where it stopped, with nothing lost and nothing twice.
//
// # The idea
//
// A run is a function of its input. So what has to survive is the state at some
// point, a checkpoint, and the batches since, a log: whoever comes back loads the
// one and runs the other again.
//
//	commit of a batch   its events go into the log, or what it did, synced once; only
//	                    then does anybody get its results. How it went (a view) goes in
//	                    with the next one
//	checkpoint          the rows that changed since the last one, the versions that
//	                    windows need, and where the run stands, into a file of its own,
//	                    slice by slice while the run goes on; then the manifest names
//	                    that file, too (written beside, synced, renamed, directory
//	                    synced); then the log forgets what came before
//	restore             the files that the manifest names, one after the other, then the
//	                    log behind them
//
// A crash at any operation leaves the old checkpoint with its log or the new one.
// What a crash leaves over is removed by the next run: checkpoints that no manifest
// names, files under names that end in ".new".
//
// The directory is locked: a second process is refused. It remembers whose state it
// keeps (program, parameters, shapes of tables, event types) and refuses any other's,
// unless the application has more tables or migrates its values.
package checkpoint
