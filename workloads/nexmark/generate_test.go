package nexmark

import (
	"math"
	"regexp"
	"strings"
	"testing"
)

const before10s = 100_000

// make10s makes ten seconds of events at 10,000 a second, after as many others.
func make10s(adversarial bool) []Event {
	events := make([]Event, 100_000)
	NewGenerator(1, 10_000, adversarial).Fill(events, before10s)
	return events
}

// The figures are those that the rules of the generator imply: see the table of Beam's
// parameters in docs/workloads/nexmark.md.
func TestGeneratorFollowsTheRules(t *testing.T) {
	events := make10s(false)
	kinds := map[Kind]int{}
	bidders, auctions := map[int64]int{}, map[int64]int{}
	joined := map[int64]bool{}
	for i, e := range events {
		kinds[e.Kind]++
		if want := baseTime + int64(before10s+i)*second/10_000; e.Time != want {
			t.Fatalf("event %d at %d, want %d", i, e.Time, want)
		}
		switch e.Kind {
		case KindPerson:
			joined[e.Person().ID] = true
		case KindAuction:
			a := e.Auction()
			if a.Category < 10 || a.Category > 14 || a.Reserve <= a.InitialBid || a.Expires <= a.Time {
				t.Fatalf("event %d: %+v", i, a)
			}
		case KindBid:
			b := e.Bid()
			if b.Price < 100 || b.Price > 100_000_000 {
				t.Fatalf("event %d: %+v", i, b)
			}
			bidders[b.Bidder]++
			auctions[b.Auction]++
		}
	}
	if kinds[KindPerson] != 2000 || kinds[KindAuction] != 6000 || kinds[KindBid] != 92_000 {
		t.Errorf("kinds %v", kinds)
	}
	near := func(what string, got int, want, within float64) {
		if math.Abs(float64(got)-want) > within*want {
			t.Errorf("%s: %d, want about %.0f", what, got, want)
		}
	}
	near("distinct bidders", len(bidders), 2812, 0.02)
	near("distinct auctions", len(auctions), 6077, 0.02)
	near("bids of the hottest bidder", hottest(bidders), 3562, 0.05)
	near("bids for the hottest auction", hottest(auctions), 849, 0.1)
	known := 0
	for id := range bidders {
		if joined[id] {
			known++
		}
	}
	if known < len(bidders)*6/10 {
		t.Errorf("%d of %d bidders joined: ids do not fit those of persons", known, len(bidders))
	}
}

func hottest(n map[int64]int) (most int) {
	for _, count := range n {
		most = max(most, count)
	}
	return most
}

// Any part of the stream is the same whoever makes it.
func TestGeneratorMakesPartsAlone(t *testing.T) {
	for _, adversarial := range []bool{false, true} {
		g := NewGenerator(7, 1000, adversarial)
		whole := make([]Event, 5000)
		g.Fill(whole, 0)
		part := make([]Event, 777)
		g.Fill(part, 1234)
		for i := range part {
			if part[i] != whole[1234+i] {
				t.Fatalf("event %d: %+v alone, %+v in the whole", 1234+i, part[i], whole[1234+i])
			}
		}
		b, again := whole[10].Bid(), whole[10].Bid()
		if b.URL() != again.URL() || b.Channel() == "" || len(b.Extra()) < 50 {
			t.Errorf("texts of %+v: %q, %q", b, b.URL(), b.Channel())
		}
	}
}

func TestAdversarialStream(t *testing.T) {
	events := make10s(true)
	late, early, latest := 0, 0, int64(0)
	bidders := map[int64]int{}
	for _, e := range events {
		if e.Time < latest {
			early++
		}
		if e.Time < latest-DisorderMax {
			late++
		}
		latest = max(latest, e.Time)
		if e.Kind == KindBid {
			bidders[e.Bid().Bidder]++
		}
	}
	if share := float64(late) / float64(len(events)); share < 0.008 || share > 0.012 {
		t.Errorf("late: %.4f", share)
	}
	if share := float64(early) / float64(len(events)); share < 0.08 || share > 0.12 {
		t.Errorf("out of order: %.4f", share)
	}
	if most := hottest(bidders); most < 100 || most > 5000 {
		t.Errorf("the hottest bidder made %d bids", most)
	}
}

func BenchmarkGenerate(b *testing.B) {
	g := NewGenerator(1, 1_000_000, false)
	events := make([]Event, 4096)
	for first := 0; b.Loop(); first += len(events) {
		g.Fill(events, int64(first))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4096, "ns/event")
}

// Texts are drawn for themselves, with letters within their bounds, and without space at their ends.
func TestTexts(t *testing.T) {
	page := regexp.MustCompile(`^https://www\.nexmark\.com/([^/]*)/([^/]*)/([^/]*)/item\.htm\?query=1(&channel_id=\d+)?$`)
	channel := regexp.MustCompile(`^(Google|Facebook|Baidu|Apple|channel-\d{1,4})$`)
	inner, ids, spaces := 0, 0, 0
	word := func(text string, most int) {
		if len(text) > most || strings.Trim(text, " ") != text || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz _") != "" {
			t.Fatalf("%q, of %d letters at most", text, most)
		}
		spaces += strings.Count(text, " ")
		inner += len(text)
	}
	for _, e := range make10s(false) {
		switch e.Kind {
		case KindAuction:
			a := e.Auction()
			word(a.ItemName(), 20)
			word(a.Description(), 100)
		case KindBid:
			b := e.Bid()
			url, again := b.URL(), b.URL() // made anew each time
			m := page.FindStringSubmatch(url)
			if m == nil || !channel.MatchString(b.Channel()) || url != again {
				t.Fatalf("%q, %q, %q", url, again, b.Channel())
			}
			for _, dir := range m[1:4] {
				word(dir, 5)
			}
			if directories(b.URL()) != [3]string(m[1:4]) {
				t.Fatalf("%q in %q", directories(b.URL()), b.URL())
			}
			if m[4] != "" {
				ids++
			}
		}
	}
	// Half of 92,000 bids are from cold channels, nine of ten of these with a number; one of 26 letters is a space,
	// where it is not at an end.
	if ids < 40_000 || ids > 43_000 || spaces < inner/52 || spaces > inner/26 {
		t.Errorf("%d pages with the number of a channel, %d of %d letters are spaces", ids, spaces, inner)
	}
}
