// Package bikeshare replays the trips of a bicycle share: bikes leave stations,
// arrive at stations that have a free dock, and are moved by vans in between.
//
// Each event touches a bike and one or two stations, so that conflicts are what
// they are in a city: the rush hours at the railway station. The built-in input
// is the first 60,000 of the 326,339 trips that the Bay Area Bike Share
// published for 2014, in the public domain (CC0).
//
// The rules stand in docs/workloads/bikeshare.md.
package bikeshare
