// Package source reads events from files, from a directory of files, or from a stream.
//
// # The idea
//
// An application's event types say what an event looks like, so that a file of events
// needs no code of its own: a line of JSON, a row of CSV or a record of bytes becomes the
// event of a type, and what cannot become one is discarded with the reason, or ends the
// reading. A source tells where it stands after each event, and goes on there.
//
//	jsonl   {"transfer":{"from":1,"to":2,"amount":5}}     an event a line under its type's name;
//	        {"from":1,"to":2,"amount":5}                  without it if there is one type only
//	csv     event,from,to,amount                          a header, then an event a row; the
//	        transfer,1,2,5                                column event only if there are several types
//	bin     length (4 bytes, little endian), type (varint), the event's byte form
//
// Fields have the names that encoding/json gives them; in CSV those of numbers, strings
// and booleans, an empty one being zero. All may be compressed with gzip or zstd.
package source
